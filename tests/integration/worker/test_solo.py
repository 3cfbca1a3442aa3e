"""The solo worker: short tasks between two steps, and a keeper that does the steps while a task is long."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taskmq import App, State
from taskmq.errors import SoftTimeLimitExceeded
from taskmq.pools.handlers import Handlers
from taskmq.worker import between, loop
from taskmq.worker.baton import Baton
from taskmq.worker.coordinator import Coordinator
from taskmq.worker.exits import EXIT_FAILED, EXIT_OK
from taskmq.worker.options import WorkerOptions
from taskmq.worker.worker import Worker
from tests.support.serving import serve
from tests.support.waiting import wait_until

Patch = pytest.MonkeyPatch


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with App(broker_url=f"sqlite:///{tmp_path / 'q.db'}", lease=1.0) as app:
        yield app


def worker_of(app: App, prefetch: int | None = None) -> Worker:
    return Worker(app, WorkerOptions(pool="solo", concurrency=1, name="w1", prefetch=prefetch))


def on_keeper() -> bool:
    return threading.current_thread().name == "taskmq-keeper"


def count_takeovers(patch: Patch) -> list[int]:
    taken: list[int] = []
    take_over = Baton.take_over

    def counted(baton: Baton, task: int) -> bool:
        got = take_over(baton, task)
        if got:
            taken.append(task)
        return got

    patch.setattr(Baton, "take_over", counted)
    return taken


def test_short_tasks_need_nobody_but_the_thread_they_run_on(app: App, monkeypatch: Patch) -> None:
    # No task of this test takes as long, on however busy a machine.
    monkeypatch.setattr(between, "GRACE", 0.5)
    taken = count_takeovers(monkeypatch)
    steppers: set[int] = set()
    step = Coordinator.step

    def noted(coordinator: Coordinator) -> bool:
        steppers.add(threading.get_ident())
        return step(coordinator)

    monkeypatch.setattr(Coordinator, "step", noted)
    runners: set[int] = set()
    task = app.task(name="jobs.short")(lambda: runners.add(threading.get_ident()))
    results = [task.delay() for _ in range(100)]
    assert serve(worker_of(app), lambda: [result.get(timeout=20) for result in results]) == EXIT_OK
    assert steppers == runners == {threading.get_ident()}
    assert taken == []


def test_what_a_long_task_holds_is_renewed_while_it_runs(app: App) -> None:
    @app.task(name="jobs.long", bind=True)
    def long(ctx: object) -> bool:
        operators = app.transport.operators

        def lease() -> float:
            (found,) = operators.find(result.id)
            assert found.lease_until is not None
            return found.lease_until

        first = lease()
        wait_until(lambda: lease() > first, what="a renewal")
        return True

    result = long.delay()
    assert serve(worker_of(app), lambda: result.get(timeout=15)) == EXIT_OK
    assert result.state is State.SUCCEEDED


def test_commands_are_answered_while_a_task_runs(app: App) -> None:
    @app.task(name="jobs.asking")
    def asking() -> str:
        coordination = app.transport.coordination
        coordination.send("ping", {}, to=["w1"], reply_to="r")
        ((_, reply),) = wait_until(lambda: coordination.replies("r"), what="an answer")
        return str(reply["ok"])

    def body() -> None:
        assert asking.delay().get(timeout=15) == "pong"

    serve(worker_of(app), body)


def test_a_signal_while_a_task_runs_is_heard_before_it_ends(app: App) -> None:
    worker = worker_of(app)

    @app.task(name="jobs.stopping")
    def stopping() -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        coordinator = worker.coordinator
        assert coordinator is not None
        wait_until(lambda: coordinator.stage.value == "draining", what="draining")
        return "ended in peace"

    result = stopping.delay()
    assert worker.run() == EXIT_OK
    assert result.get(timeout=1) == "ended in peace"


def test_a_signal_is_heard_while_an_event_loop_of_the_task_has_its_own(app: App) -> None:
    worker = worker_of(app)

    async def hear() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, lambda: None)
        os.kill(os.getpid(), signal.SIGTERM)
        coordinator = worker.coordinator
        assert coordinator is not None
        wait_until(lambda: coordinator.stage.value == "draining", what="draining")

    task = app.task(name="jobs.hear")(lambda: asyncio.run(hear()))
    result = task.delay()
    wait_for_end = threading.Timer(20, worker.stop, ["the test"])
    wait_for_end.start()
    assert worker.run() == EXIT_OK
    wait_for_end.cancel()
    wait_for_end.join()
    assert result.get(timeout=1) is None


def test_what_a_worker_prefetched_is_handed_back_while_its_task_runs(app: App) -> None:
    worker = worker_of(app, prefetch=3)

    @app.task(name="jobs.stopping")
    def stopping() -> None:
        wait_until(lambda: later.state is State.RESERVED, what="the prefetch")
        worker.stop("asked")
        wait_until(lambda: later.state is State.QUEUED, what="the hand-back")

    first = stopping.delay()
    later = app.task(name="jobs.later")(lambda: None).delay()
    assert worker.run() == EXIT_OK
    assert (first.state, later.state) == (State.SUCCEEDED, State.QUEUED)


def drivers_checked(patch: Patch) -> list[str]:
    """Whoever steps or waits while another thread does is noted."""
    driving = threading.Lock()
    together: list[str] = []

    def alone(call: Callable[[Coordinator], object]) -> Callable[[Coordinator], object]:
        def checked(coordinator: Coordinator) -> object:
            if not driving.acquire(blocking=False):
                together.append(threading.current_thread().name)
                return call(coordinator)
            try:
                return call(coordinator)
            finally:
                driving.release()

        return checked

    for holder, name in ((Coordinator, "step"), (Coordinator, "close"), (loop, "wait")):
        patch.setattr(holder, name, alone(getattr(holder, name)))
    return together


def test_a_coordinator_is_never_driven_by_two_threads(app: App, monkeypatch: Patch) -> None:
    monkeypatch.setattr(between, "GRACE", 0.002)
    taken = count_takeovers(monkeypatch)
    together = drivers_checked(monkeypatch)
    dice = random.Random(11)
    task = app.task(name="jobs.nap")(time.sleep)
    results = [task.delay(dice.choice((0.0, dice.uniform(0, 0.012)))) for _ in range(150)]
    assert serve(worker_of(app), lambda: [result.get(timeout=20) for result in results]) == EXIT_OK
    assert together == []
    assert len(taken) > 10
    assert {result.state for result in results} == {State.SUCCEEDED}


def test_a_soft_limit_that_meets_the_end_of_its_task_hits_nothing_else(
    app: App, monkeypatch: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(between, "GRACE", 0.001)
    dice = random.Random(13)

    @app.task(name="jobs.close", soft_time_limit=0.004)
    def close(seconds: float) -> str:
        try:
            time.sleep(seconds)
        except SoftTimeLimitExceeded:
            return "limited"
        return "in time"

    results = [close.delay(dice.uniform(0.001, 0.009)) for _ in range(120)]
    assert serve(worker_of(app), lambda: [result.get(timeout=20) for result in results]) == EXIT_OK
    # In between it hits our own lines around the function: then the run has failed, and nothing else.
    ends = [result.state for result in results]
    assert set(ends) <= {State.SUCCEEDED, State.FAILED}
    values = {result.get() for result in results if result.state is State.SUCCEEDED}
    assert values == {"limited", "in time"}
    assert not [record for record in caplog.records if record.levelname == "CRITICAL"]


def test_a_soft_limit_that_comes_late_hits_neither_the_loop_nor_the_next_task(
    app: App, monkeypatch: Patch
) -> None:
    restore, step = Handlers.restore, Coordinator.step

    def late() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    def restoring(handlers: Handlers) -> None:
        late()
        restore(handlers)

    def stepping(coordinator: Coordinator) -> bool:
        late()
        return step(coordinator)

    monkeypatch.setattr(Handlers, "restore", restoring)
    monkeypatch.setattr(Coordinator, "step", stepping)
    limited = app.task(name="jobs.limited", soft_time_limit=60.0)(lambda: "fine")
    results = [limited.delay() for _ in range(3)]
    serve(worker_of(app), lambda: [result.get(timeout=10) for result in results])
    assert [result.get(timeout=1) for result in results] == ["fine"] * 3


def test_a_soft_limit_sends_no_signal_where_no_handler_can_be_installed(app: App) -> None:
    worker = worker_of(app)
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    task = app.task(name="jobs.nap", soft_time_limit=0.02)(lambda: time.sleep(0.2))
    codes: list[int] = []
    # Its default action would be this process's end.
    thread = threading.Thread(target=lambda: codes.append(worker.run()), daemon=True)
    thread.start()
    try:
        task.delay().get(timeout=10)
        worker.stop()
        thread.join(10)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (codes, heard) == ([EXIT_OK], [])


@pytest.mark.parametrize("who", ["the task's thread", "the keeper"])
def test_a_step_that_fails_ends_the_worker_and_leaves_the_message_to_its_lease(
    app: App, monkeypatch: Patch, caplog: pytest.LogCaptureFixture, who: str
) -> None:
    step = Coordinator.step
    failed = threading.Event()

    def failing(coordinator: Coordinator) -> bool:
        if on_keeper() is (who == "the keeper") and started.is_set() and not failed.is_set():
            failed.set()
            raise RuntimeError("a step failed")
        return step(coordinator)

    started = threading.Event()

    @app.task(name="jobs.begin")
    def begin() -> None:
        started.set()
        if who == "the keeper":
            wait_until(failed.is_set, what="the keeper's step")
            wait_until(lambda: "the coordinator failed" in caplog.text)

    monkeypatch.setattr(Coordinator, "step", failing)
    result = begin.delay()
    # Not on the main thread: there the process would end under the task.
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(worker_of(app).run()), daemon=True)
    thread.start()
    thread.join(20)
    assert codes == [EXIT_FAILED]
    assert "a step failed" in caplog.text
    assert result.state is State.RUNNING
    assert app.transport.coordination.workers() == []


def test_a_failure_between_a_task_and_the_loop_hands_the_message_back(
    app: App, monkeypatch: Patch
) -> None:
    def fail(handlers: Handlers) -> None:
        raise KeyboardInterrupt

    task = app.task(name="jobs.work")(lambda: None)
    result = task.delay()
    monkeypatch.setattr(Handlers, "restore", fail)
    assert worker_of(app).run() == EXIT_FAILED
    assert result.state is State.QUEUED
