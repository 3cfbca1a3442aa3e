"""What one task leaves in a prefork child does not reach the next one, nor break the pipe between."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskmq import App, Context
from taskmq.context import MAX_CHILDREN
from taskmq.errors import Reject, SoftTimeLimitExceeded
from taskmq.pools import frames
from taskmq.pools.base import Ending
from taskmq.pools.child import ChildSettings
from taskmq.pools.execution import MAX_REASON
from taskmq.pools.prefork import PreforkPool
from tests.support.waiting import wait_until
from tests.unit.pools.jobs import Driver, job_of

Start = Callable[[], Driver]


@pytest.fixture
def app() -> App:
    return App(broker_url="memory://")


@pytest.fixture
def start(app: App) -> Iterator[Start]:
    """Starts one child; declare the tasks before."""
    drivers: list[Driver] = []

    def make() -> Driver:
        pool = PreforkPool(app, 1, clock=app.clock, settings=ChildSettings())
        pool.start()
        drivers.append(Driver(pool))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.pool.stop(hand_back=False)


def sleeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def limited(seconds: float) -> str:
    try:
        time.sleep(seconds)
    except SoftTimeLimitExceeded:
        return "limited"
    return "not limited"


def test_a_soft_limit_that_hits_while_progress_is_sent_leaves_no_half_frame(
    app: App, start: Start
) -> None:
    def report(ctx: Context) -> str:
        value = "p" * 900_000
        try:
            ctx.progress(value)
            return "all was sent"
        except SoftTimeLimitExceeded:
            return "limited"

    reporting = app.task(name="jobs.report", bind=True)(report)
    next_one = app.task(name="jobs.pid")(os.getpid)
    driver = start()
    job = driver.dispatch(job_of(app, reporting, soft_time_limit=60.0))
    pid = driver.pool.pids()[0]
    # Nobody reads: the child fills the pipe and waits in the middle of the frame.
    sock = driver.pool._children[pid].sock  # type: ignore[attr-defined]
    wait_until(lambda: len(_peek(sock)) > 50_000 and sleeps(pid), what="a full pipe")
    os.kill(pid, signal.SIGUSR1)
    completion = driver.end_of(job)
    assert (completion.ending, completion.body) == (Ending.SUCCEEDED, b'"limited"')
    assert [len(p.body or b"") for p in driver.progress] == [900_002]
    assert driver.run(job_of(app, next_one)).body == str(pid).encode()


def _peek(sock: Any) -> bytes:
    import socket

    try:
        return bytes(sock.recv(100_000, socket.MSG_PEEK))
    except BlockingIOError:
        return b""


@pytest.mark.parametrize("timer", [signal.ITIMER_REAL, signal.ITIMER_PROF, signal.ITIMER_VIRTUAL])
def test_a_timer_that_a_task_leaves_running_does_not_hit_the_next(
    app: App, start: Start, timer: int
) -> None:
    def leave() -> None:
        signal.setitimer(timer, 0.2)

    def compute() -> int:
        end = time.process_time() + 0.4
        while time.process_time() < end:
            sum(range(5_000))
        return os.getpid()

    leaving = app.task(name="jobs.leave")(leave)
    next_one = app.task(name="jobs.compute")(compute)
    driver = start()
    driver.run(job_of(app, leaving))
    assert driver.run(job_of(app, next_one)).ending is Ending.SUCCEEDED


def test_a_signal_that_a_task_leaves_blocked_still_limits_the_next(app: App, start: Start) -> None:
    def block() -> int:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM})
        # Pending when the mask is put back: then it would end the child.
        os.kill(os.getpid(), signal.SIGALRM)
        return os.getpid()

    blocking = app.task(name="jobs.block")(block)
    next_one = app.task(name="jobs.limited")(limited)
    driver = start()
    assert driver.run(job_of(app, blocking)).ending is Ending.SUCCEEDED
    completion = driver.run(job_of(app, next_one, 5, soft_time_limit=0.1))
    assert completion.body == b'"limited"'


@pytest.mark.parametrize("when", ["in a task", "in the project"])
def test_a_traceback_at_the_limit_s_signal_leaves_the_next_task_its_limit(
    app: App, start: Start, when: str
) -> None:
    def register() -> None:
        faulthandler.register(signal.SIGUSR1, file=2)

    if when == "in the project":
        app.hooks.child_init.connect(lambda app: register())
    task = app.task(name="jobs.register")(register if when == "in a task" else time.time)
    next_one = app.task(name="jobs.limited")(limited)
    driver = start()
    assert driver.run(job_of(app, task)).ending is Ending.SUCCEEDED
    completion = driver.run(job_of(app, next_one, 5, soft_time_limit=0.1))
    assert completion.body == b'"limited"'


@pytest.mark.parametrize("label", [5, None, b"x", "x" * 256], ids=["int", "None", "bytes", "long"])
def test_a_label_that_is_no_short_text_fails_its_call(app: App, start: Start, label: Any) -> None:
    def report(ctx: Context) -> None:
        ctx.progress(1, label=label)

    task = app.task(name="jobs.report", bind=True)(report)
    completion = start().run(job_of(app, task))
    assert completion.ending is Ending.FAILED
    assert "label" in completion.error


def test_a_reject_with_a_huge_reason_is_buried_with_the_beginning_of_it(
    app: App, start: Start
) -> None:
    def reject() -> None:
        raise Reject("x" * 20_000_000)

    task = app.task(name="jobs.reject")(reject)
    completion = start().run(job_of(app, task))
    assert completion.ending is Ending.BURY
    assert completion.reason.startswith("x" * MAX_REASON)
    assert "left out" in completion.reason
    assert len(completion.reason) < MAX_REASON + 100


def test_of_very_many_children_the_first_are_named(app: App, start: Start) -> None:
    def publish(ctx: Context) -> None:
        for number in range(600_000):
            ctx.note_child(f"{number:026}")

    task = app.task(name="jobs.publish", bind=True)(publish)
    completion = start().run(job_of(app, task))
    assert completion.ending is Ending.SUCCEEDED
    assert len(completion.children) == MAX_CHILDREN


def test_a_completion_that_cannot_be_sent_fails_its_run_and_the_child_goes_on(
    app: App, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Inherited by the child; the coordinator, which reads, keeps to the real bound.
    monkeypatch.setattr(frames, "MAX_META", 2_000)

    def publish(ctx: Context) -> int:
        for number in range(200):
            ctx.note_child(f"{number:026}")
        return 1

    task = app.task(name="jobs.publish", bind=True)(publish)
    next_one = app.task(name="jobs.pid")(os.getpid)
    driver = start()
    driver.wait_free()
    (pid,) = driver.pool.pids()
    monkeypatch.undo()
    completion = driver.run(job_of(app, task))
    assert completion.ending is Ending.FAILED
    assert "too large to be sent" in completion.error
    assert driver.run(job_of(app, next_one)).body == str(pid).encode()


def test_a_job_that_cannot_be_packed_ends_alone(app: App, start: Start) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    task = app.task(name="jobs.pid")(os.getpid)
    driver = start()
    job = job_of(app, task)
    odd = replace(job, message=replace(job.message, headers={"deep": deep}))
    assert driver.run(odd).ending is Ending.UNREADABLE
    assert driver.run(job_of(app, task)).ending is Ending.SUCCEEDED
