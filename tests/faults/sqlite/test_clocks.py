"""The wall clock is set (rows 18 and 19): no lease ends for it, none becomes immortal, what is due fires."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import taskmq.testing
from taskmq import App, State
from taskmq.testing import VirtualWorker
from tests.support.pools import HeldPool

HOUR = 3600.0
LEASE = 30.0


@pytest.fixture
def app(path: Path) -> Iterator[App]:
    app = taskmq.testing.app(broker_url=f"sqlite:///{path}", lease=LEASE)
    yield app
    app.close()


def seconds(count: float, *workers: VirtualWorker) -> None:
    """Let time pass in which each worker takes its turns."""
    for _ in range(int(count * 2)):
        workers[0].clock.advance(0.5)
        for worker in workers:
            worker.step()


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_running_task_keeps_its_worker_whichever_way_the_clock_is_set(
    app: App, jump: float
) -> None:
    result = app.task(name="work")(lambda: None).delay()
    mine, theirs = HeldPool(1), HeldPool(1)
    with (
        taskmq.testing.worker(app, pool=mine, name="a") as a,
        taskmq.testing.worker(app, pool=theirs, name="b") as b,
    ):
        seconds(5, a, b)
        a.clock.step(jump)
        # It is busy for most of a lease, while the other one looks for lost ones.
        seconds(LEASE * 0.7, b)
        seconds(5 * LEASE, a, b)
        assert mine.running() == [result.id]
        assert theirs.dispatched == []
        mine.end(result.id)
        seconds(1, a, b)
    assert result.state is State.SUCCEEDED


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_dead_worker_s_task_runs_elsewhere_whichever_way_the_clock_is_set(
    app: App, jump: float
) -> None:
    result = app.task(name="work")(lambda: None).delay()
    mine, theirs = HeldPool(1), HeldPool(1)
    with (
        taskmq.testing.worker(app, pool=mine, name="a") as a,
        taskmq.testing.worker(app, pool=theirs, name="b") as b,
    ):
        seconds(5, a, b)
        assert mine.running() == [result.id]
        b.clock.step(jump)
        # `a` takes no turn any more. One whole lease after the jump, the rest of its own, and two looks.
        seconds(4 * LEASE, b)
        assert theirs.running() == [result.id]


def test_set_forward_it_fires_what_is_due_once_and_nothing_else(app: App) -> None:
    work = app.task(name="work")(lambda: None)
    due = [work.submit(countdown=60.0 * n) for n in (1, 30, 59)]
    later = work.submit(countdown=2 * HOUR)
    pool = HeldPool(10)
    with taskmq.testing.worker(app, pool=pool, concurrency=10) as worker:
        seconds(5, worker)
        assert pool.dispatched == []
        worker.clock.step(HOUR)
        seconds(5, worker)
        assert sorted(pool.dispatched) == sorted(result.id for result in due)
        pool.end_all()
        worker.clock.step(-HOUR)
        seconds(65, worker)
        assert len(pool.dispatched) == 3
        assert later.state is State.SCHEDULED


def test_set_back_it_lets_nothing_start_early_and_keeps_the_order(app: App) -> None:
    work = app.task(name="work")(lambda: None)
    first = work.delay()
    app.clock.step(-HOUR)  # type: ignore[attr-defined]
    second = work.delay()
    timed = work.submit(countdown=60.0)
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as worker:
        for result in (first, second):
            seconds(1, worker)
            assert pool.running() == [result.id]
            pool.end(result.id)
        seconds(50, worker)
        assert pool.dispatched == [first.id, second.id]
        seconds(15, worker)
        assert pool.running() == [timed.id]
