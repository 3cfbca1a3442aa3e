"""What every pool does alike: run, report, end each job once, fail what raises, take cancellations."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from taskmq import App, Context
from taskmq.pools.asyncio_pool import AsyncioPool
from taskmq.pools.base import Ending, Job, Pool
from taskmq.pools.child import ChildSettings
from taskmq.pools.inline import InlinePool
from taskmq.pools.prefork import PreforkPool
from taskmq.pools.solo import SoloPool
from taskmq.pools.threads import ThreadsPool
from tests.support.waiting import wait_until
from tests.unit.pools.jobs import Driver, job_of


class ServedSolo(SoloPool):
    """Runs what is dispatched on a thread of its own: the test's thread plays the coordinator."""

    def __init__(self, app: App) -> None:
        super().__init__(app, clock=app.clock)
        self._taken: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def _serve(self) -> None:
        while (run := self._taken.get()) is not None:
            run()

    def start(self) -> None:
        threading.Thread(target=self._serve, daemon=True).start()
        # The slot is that of the thread that starts it.
        self._taken.put(super().start)

    def dispatch(self, job: Job) -> None:
        super().dispatch(job)
        self._taken.put(self.take())

    def stop(self, *, hand_back: bool) -> None:
        super().stop(hand_back=hand_back)
        self._taken.put(None)


POOLS = ("prefork", "threads", "solo", "asyncio", "inline")


@pytest.fixture
def app() -> App:
    return App(broker_url="memory://")


def make(name: str, app: App, size: int) -> Pool:
    if name == "prefork":
        return PreforkPool(app, size, clock=app.clock, settings=ChildSettings())
    if name == "threads":
        return ThreadsPool(app, size, clock=app.clock)
    if name == "solo":
        return ServedSolo(app)
    if name == "asyncio":
        return AsyncioPool(app, size, clock=app.clock)
    return InlinePool(app, size)


@pytest.fixture(params=POOLS)
def driver(request: pytest.FixtureRequest, app: App) -> Iterator[Driver]:
    """A running pool of two slots (solo has one). Tasks must be declared before a job is dispatched;
    with prefork before the first `start`, so tests call `started`."""
    pool = make(request.param, app, 2)
    yield Driver(pool)
    pool.stop(hand_back=False)


def started(driver: Driver) -> Driver:
    if driver.pool.needs_main_thread:
        # The test's thread plays the coordinator, so another one serves.
        threading.Thread(target=driver.pool.serve, daemon=True).start()
    driver.pool.start()
    driver.wait_free()
    return driver


def test_a_job_runs_and_its_value_comes_back(app: App, driver: Driver) -> None:
    task = app.task(name="jobs.add")(lambda a, b: a + b)
    completion = started(driver).run(job_of(app, task, 1, 2))
    assert (completion.ending, completion.body) == (Ending.SUCCEEDED, b"3")


def test_an_async_def_runs_in_every_pool(app: App, driver: Driver) -> None:
    async def fn(a: int) -> int:
        await asyncio.sleep(0.01)
        return a * 2

    task = app.task(name="jobs.double")(fn)
    completion = started(driver).run(job_of(app, task, 4))
    assert completion.body == b"8"


@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_a_task_raises_ends_that_task_and_the_slot_goes_on(
    app: App, driver: Driver, kind: type[BaseException]
) -> None:
    def fail() -> None:
        raise kind("boom")

    failing = app.task(name="jobs.fail")(fail)
    working = app.task(name="jobs.pid")(os.getpid)
    started(driver)
    assert driver.run(job_of(app, failing)).ending is Ending.FAILED
    assert driver.run(job_of(app, working)).ending is Ending.SUCCEEDED


def test_progress_comes_before_the_end(app: App, driver: Driver) -> None:
    def fn(ctx: Context) -> str:
        ctx.progress({"done": 1}, "half")
        return "end"

    job = job_of(app, app.task(name="jobs.progress", bind=True)(fn))
    started(driver).run(job)
    (progress,) = driver.progress
    assert (progress.number, progress.body, progress.label) == (
        job.number,
        b'{"done":1}',
        "half",
    )


def test_a_cancelled_job_stops_at_its_next_check(app: App, driver: Driver) -> None:
    if driver.pool.name == "inline":
        pytest.skip("an inline job is over before anybody could cancel it")

    def fn(ctx: Context) -> None:
        ctx.progress("started")
        while True:
            ctx.check_cancelled()
            time.sleep(0.005)

    task = app.task(name="jobs.loop", bind=True)(fn)
    job = started(driver).dispatch(job_of(app, task))
    wait_until(lambda: driver.poll() and driver.progress)
    driver.pool.cancel(job.number + 1_000, "somebody else")
    driver.pool.cancel(job.number, "revoked")
    assert driver.end_of(job).ending is Ending.CANCELLED


def test_slots_are_what_free_says(app: App, driver: Driver) -> None:
    task = app.task(name="jobs.wait")(time.sleep)
    size = 1 if driver.pool.name == "solo" else 2
    started(driver).wait_free(size)
    jobs = []
    while driver.pool.free():
        jobs.append(job_of(app, task, 0.05))
        driver.pool.dispatch(jobs[-1])
    assert len(jobs) == size
    for job in jobs:
        driver.end_of(job)
    assert driver.pool.free() == size


def test_a_descriptor_is_readable_when_there_is_something_to_poll(app: App, driver: Driver) -> None:
    from taskmq.bell import readable

    if driver.pool.name == "inline":
        assert driver.pool.fds() == ()
        return
    if driver.pool.between_steps:
        pytest.skip("whoever ran the job knows that it has ended")
    task = app.task(name="jobs.pid")(os.getpid)
    job = started(driver).dispatch(job_of(app, task))
    rounds = 0
    while job.number not in driver.ended:
        readable(driver.pool.fds(), 10.0)
        driver.poll()
        rounds += 1
        assert rounds < 20


def test_an_unknown_task_ends_as_such(app: App, driver: Driver) -> None:
    assert started(driver).run(job_of(app, "jobs.nowhere")).ending is Ending.UNREGISTERED


@pytest.mark.parametrize(
    ("hand_back", "ending"), [(True, Ending.HANDED_BACK), (False, Ending.LOST)]
)
def test_what_runs_when_the_pool_stops_ends_as_told(
    app: App, driver: Driver, hand_back: bool, ending: Ending
) -> None:
    task = app.task(name="jobs.wait")(time.sleep)
    job = started(driver).dispatch(job_of(app, task, 0.5))
    driver.pool.stop(hand_back=hand_back)
    driver.poll()
    assert driver.ended[job.number].ending is ending
    # A second stop, and polling after it, are harmless.
    driver.pool.stop(hand_back=hand_back)
    driver.poll()


def test_the_soft_limit_is_raised_inside_the_task_where_the_pool_says_so(
    app: App, driver: Driver
) -> None:
    from taskmq.errors import SoftTimeLimitExceeded

    def fn() -> str:
        try:
            for _ in range(1_000):
                time.sleep(0.005)
        except SoftTimeLimitExceeded:
            return "caught"
        return "never raised"

    task = app.task(name="jobs.slow")(fn)
    next_one = app.task(name="jobs.pid")(os.getpid)
    if driver.pool.name in ("inline", "solo"):
        pytest.skip("not enforced, or only on the main thread: tests/integration/worker")
    assert driver.pool.can("soft", task)
    started(driver)
    completion = driver.run(job_of(app, task, soft_time_limit=0.05))
    assert completion.body == b'"caught"'
    # It does not reach the next job in the same slot.
    after = driver.run(job_of(app, next_one, soft_time_limit=5.0))
    assert after.ending is Ending.SUCCEEDED
