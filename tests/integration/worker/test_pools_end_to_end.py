"""Real workers with every pool: tasks run, limits bite where they can, stopping leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from taskmq import App, Context, Result, State
from taskmq.errors import ConfigError, SoftTimeLimitExceeded, TimeLimitExceeded
from taskmq.worker.exits import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from taskmq.worker.options import WorkerOptions
from taskmq.worker.worker import Worker
from tests.support.serving import serve
from tests.support.waiting import wait_until

POOLS = ("prefork", "threads", "solo", "asyncio")
Make = Callable[..., tuple[App, Worker]]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    apps = []

    def build(pool: str, concurrency: int = 2, **settings: Any) -> tuple[App, Worker]:
        app = App(broker_url=f"sqlite:///{tmp_path / 'q.db'}", **settings)
        apps.append(app)
        options = WorkerOptions(pool=pool, concurrency=1 if pool == "solo" else concurrency)
        return app, Worker(app, options)

    yield build
    for app in apps:
        app.close()


@pytest.mark.parametrize("pool", POOLS)
def test_functions_and_coroutines_run_and_what_they_publish_too(make: Make, pool: str) -> None:
    app, worker = make(pool)
    add = app.task(name="jobs.add")(lambda a, b: a + b)

    @app.task(name="jobs.later")
    async def later(a: int) -> int:
        await asyncio.sleep(0.01)
        return a * 2

    @app.task(name="jobs.parent", bind=True)
    def parent(ctx: Context) -> str:
        ctx.progress("on the way")
        return ctx.publish(add, (20, 3)).id

    def body() -> None:
        assert add.delay(1, 2).get(timeout=10) == 3
        assert later.delay(4).get(timeout=10) == 8
        child = parent.delay().get(timeout=10)
        assert app.result(child).get(timeout=10) == 23

    assert serve(worker, body) == EXIT_OK


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_the_soft_limit_is_raised_inside(make: Make, pool: str, kind: str) -> None:
    if (pool, kind) == ("threads", "coroutine"):
        pytest.skip("a thread that waits in a loop is interrupted only when it wakes")
    app, worker = make(pool)

    def slow() -> str:
        try:
            for _ in range(500):
                time.sleep(0.01)
        except SoftTimeLimitExceeded:
            return "caught"
        return "never raised"

    async def aslow() -> str:
        try:
            await asyncio.sleep(5)
        except SoftTimeLimitExceeded:
            return "caught"
        return "never raised"

    fn: Any = slow if kind == "function" else aslow
    task = app.task(name="jobs.slow", soft_time_limit=0.05)(fn)
    after = app.task(name="jobs.after", soft_time_limit=5.0)(lambda: "fine")

    def body() -> None:
        assert task.delay().get(timeout=10) == "caught"
        assert after.delay().get(timeout=10) == "fine"

    serve(worker, body)


@pytest.mark.parametrize(("pool", "kind"), [("prefork", "function"), ("asyncio", "coroutine")])
def test_the_hard_limit_ends_it(make: Make, pool: str, kind: str) -> None:
    app, worker = make(pool)

    async def asleep() -> None:
        while True:
            try:
                await asyncio.sleep(30)
            except SoftTimeLimitExceeded:
                continue

    fn: Any = (lambda: time.sleep(30)) if kind == "function" else asleep
    task = app.task(name="jobs.deaf", time_limit=0.1)(fn)
    after = app.task(name="jobs.after")(lambda: "fine")

    def body() -> None:
        result = task.delay()
        with pytest.raises(TimeLimitExceeded, match=r"0\.1 s"):
            result.get(timeout=10)
        assert after.delay().get(timeout=10) == "fine"

    serve(worker, body)


@pytest.mark.parametrize(("pool", "kind"), [("prefork", "function"), ("asyncio", "coroutine")])
def test_a_running_task_is_terminated_by_a_revoke(make: Make, pool: str, kind: str) -> None:
    app, worker = make(pool)

    async def asleep() -> None:
        await asyncio.sleep(30)

    fn: Any = (lambda: time.sleep(30)) if kind == "function" else asleep
    task = app.task(name="jobs.long")(fn)

    def body() -> None:
        result = task.delay()
        wait_until(lambda: result.state is State.RUNNING)
        result.revoke(terminate=True)
        wait_until(lambda: result.state is State.REVOKED)

    serve(worker, body)


@pytest.mark.parametrize("pool", POOLS)
def test_a_cooperative_task_stops_when_it_is_revoked(make: Make, pool: str) -> None:
    app, worker = make(pool)

    @app.task(name="jobs.loop", bind=True)
    def loop(ctx: Context) -> None:
        while True:
            ctx.check_cancelled()
            time.sleep(0.005)

    def body() -> None:
        result = loop.delay()
        wait_until(lambda: result.state is State.RUNNING)
        result.revoke()
        wait_until(lambda: result.state is State.REVOKED)

    serve(worker, body)


@pytest.mark.parametrize("pool", POOLS)
def test_stopping_lets_running_tasks_end(make: Make, pool: str) -> None:
    app, worker = make(pool)
    task = app.task(name="jobs.nap")(lambda: time.sleep(0.3))
    results = []

    def body() -> None:
        results.append(task.delay())
        wait_until(lambda: results[0].state is State.RUNNING)

    assert serve(worker, body) == EXIT_OK
    assert results[0].state is State.SUCCEEDED


@pytest.mark.parametrize("pool", POOLS)
def test_a_term_signal_stops_the_worker(make: Make, pool: str) -> None:
    app, worker = make(pool)
    task = app.task(name="jobs.pid")(os.getpid)

    def kill() -> None:
        task.delay().get(timeout=10)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    assert worker.run() == EXIT_OK
    thread.join(5)


def test_coroutines_run_side_by_side_and_functions_do_not_hold_them_up(make: Make) -> None:
    app, worker = make("asyncio", 4)
    met: list[str] = []
    # All four are needed to get through: three on the loop and one on a thread.
    barrier = threading.Barrier(2)

    @app.task(name="jobs.meet")
    async def meet(name: str) -> None:
        met.append(name)
        while len(met) < 3:
            await asyncio.sleep(0.005)
        await asyncio.to_thread(barrier.wait, 10) if name == "a" else None

    task = app.task(name="jobs.block")(lambda: barrier.wait(10))

    def body() -> None:
        results: list[Result[Any]] = [task.delay(), *(meet.delay(name) for name in "abc")]
        for result in results:
            result.get(timeout=10)

    serve(worker, body)


def test_prefork_refuses_a_transport_its_children_cannot_reach() -> None:
    app = App(broker_url="memory://")
    worker = Worker(app, WorkerOptions(pool="prefork", concurrency=1))
    with pytest.raises(ConfigError, match="threads"):
        worker.prepare()
    assert worker.run() == EXIT_USAGE


def test_a_store_that_cannot_be_opened_is_an_exit_code_and_a_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "junk.db").write_bytes(b"this is no database at all" * 100)
    app = App(broker_url=f"sqlite:///{tmp_path / 'junk.db'}")
    assert Worker(app, WorkerOptions(pool="threads")).run() == 3
    assert "junk.db" in caplog.text


def test_two_workers_of_one_name_are_told_apart(make: Make) -> None:
    app, worker = make("threads")
    coordinator = worker.prepare()
    coordinator.open()
    coordinator.step()
    try:
        info = app.transport.coordination.workers()[0]
        # The same name on another host: alive as far as anybody can tell.
        from dataclasses import replace

        app.transport.coordination.report(replace(info, name="twin", host="elsewhere"))
        second = Worker(app, WorkerOptions(pool="threads", name="twin")).prepare()
        assert second.rules.name == f"twin-{os.getpid()}"
        second.close()
    finally:
        coordinator.close()


def test_worker_hooks_frame_its_life(make: Make) -> None:
    app, worker = make("threads")
    told: list[str] = []
    for name in ("worker_init", "worker_ready", "worker_stopping", "worker_stopped"):
        getattr(app.hooks, name).connect(lambda event, name=name: told.append(name))
    serve(worker, lambda: None)
    assert told == ["worker_init", "worker_ready", "worker_stopping", "worker_stopped"]


def test_a_task_that_ends_the_loop_itself_stops_the_worker_and_loses_nothing(make: Make) -> None:
    app, worker = make("asyncio")

    @app.task(name="jobs.rogue")
    async def rogue() -> None:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(30)

    result = rogue.delay()
    assert worker.run() == EXIT_FAILED
    assert result.state is State.QUEUED
