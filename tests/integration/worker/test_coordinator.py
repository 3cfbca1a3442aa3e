"""The coordinator's own promises: leases, draining, failing transports, sharing, idle reads only."""

from __future__ import annotations

import logging
import sqlite3
from typing import Any

import pytest

import taskmq.testing
from taskmq import State
from taskmq.pools.base import Ending
from taskmq.worker.exits import EXIT_NO_CHILDREN, EXIT_OK
from taskmq.worker.stopping import Stage
from tests.integration.worker.conftest import MakeApp
from tests.integration.worker.stepping import stage, steps, work_of
from tests.support.pools import HeldPool

# -- leases -----------------------------------------------------------------------------------------


def test_a_long_task_keeps_its_lease_and_runs_once(make_app: MakeApp) -> None:
    app = make_app(lease=30.0)
    result = work_of(app).delay()
    mine, theirs = HeldPool(1), HeldPool(1)
    with (
        taskmq.testing.worker(app, pool=mine, name="a") as a,
        taskmq.testing.worker(app, pool=theirs, name="b") as b,
    ):
        a.step()
        for _ in range(60):
            a.clock.advance(5)
            a.step()
            b.step()
        assert (mine.running(), theirs.running()) == ([result.id], [])
        mine.end(result.id)
        a.step()
    assert result.state is State.SUCCEEDED


def test_a_stopped_worker_s_task_runs_elsewhere_and_its_own_end_changes_nothing(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(lease=30.0)
    lost: list[Any] = []
    app.hooks.task_lost.connect(lost.append)
    result = work_of(app).delay()
    mine, theirs = HeldPool(1), HeldPool(1)
    with (
        taskmq.testing.worker(app, pool=mine, name="a") as a,
        taskmq.testing.worker(app, pool=theirs, name="b") as b,
    ):
        a.step()
        for _ in range(30):  # as if a were stopped: it makes no step
            b.clock.advance(5)
            b.step()
        assert theirs.running() == [result.id]
        assert theirs.job(result.id).deliveries == 2
        a.step()  # it continues, and finds its lease gone
        assert list(mine.cancelled.values()) == ["its lease was lost"]
        mine.end(result.id, body=b'"from a"')
        a.step()
        assert result.state is State.RUNNING
        theirs.end(result.id, body=b'"from b"')
        b.step()
    assert result.get(timeout=0) == "from b"
    assert len(lost) == 1
    assert [r for r in caplog.records if getattr(r, "event", "") == "lease_lost"]


def test_an_end_that_comes_after_the_lease_was_lost_is_dropped_by_the_fence(
    make_app: MakeApp,
) -> None:
    app = make_app(lease=30.0)
    result = work_of(app).delay()
    mine, theirs = HeldPool(1), HeldPool(1)
    with (
        taskmq.testing.worker(app, pool=mine, name="a") as a,
        taskmq.testing.worker(app, pool=theirs, name="b") as b,
    ):
        a.step()
        for _ in range(30):
            b.clock.advance(5)
            b.step()
        mine.end(result.id, body=b'"from a"')
        a.coordinator.renewal.done(a.clock.monotonic())  # the end is there before the renewal
        a.step()
        assert a.coordinator.reporter.counts["lost"] == 1
        assert result.state is State.RUNNING


# -- stopping ---------------------------------------------------------------------------------------


def test_draining_hands_unstarted_back_at_once_and_lets_running_ones_end(
    make_app: MakeApp,
) -> None:
    app = make_app()
    work = work_of(app)
    first, *rest = (work.delay() for _ in range(4))
    pool, other = HeldPool(1), HeldPool(4)
    with taskmq.testing.worker(app, concurrency=1, prefetch=4, pool=pool, name="a") as a:
        a.step()
        assert a.coordinator.held.unstarted == 3
        a.coordinator.stop("SIGTERM")
        a.step()
        with taskmq.testing.worker(app, concurrency=4, pool=other, name="b") as b:
            b.step()
            assert other.running() == [result.id for result in rest]
            assert [other.job(t).deliveries for t in other.running()] == [1, 1, 1]
            other.end_all()
            b.step()
        steps(a)
        assert stage(a) is Stage.DRAINING
        work.delay()
        pool.end(first.id)
        steps(a)
        assert stage(a) is Stage.STOPPED
        assert a.coordinator.exit_code == EXIT_OK
        assert pool.dispatched == [first.id]
    assert first.state is State.SUCCEEDED


def test_past_the_deadline_running_tasks_are_handed_back_uncounted(make_app: MakeApp) -> None:
    app = make_app(drain_timeout=10)
    result = work_of(app).delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        w.coordinator.stop("SIGTERM")
        steps(w)
        w.clock.advance(9.9)
        steps(w)
        assert pool.stopped is None
        w.clock.advance(0.2)
        steps(w)
        assert pool.stopped is True
        assert stage(w) is Stage.STOPPED
    assert result.state is State.QUEUED
    (found,) = app.transport.operators.find(result.id)
    assert found.deliveries == 0


def test_a_second_request_does_not_wait(make_app: MakeApp) -> None:
    app = make_app(drain_timeout=None)
    result = work_of(app).delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        w.coordinator.stop("SIGTERM")
        steps(w)
        assert stage(w) is Stage.DRAINING
        w.coordinator.stop("SIGTERM")
        steps(w)
        assert stage(w) is Stage.STOPPED
    assert result.state is State.QUEUED


def test_a_pool_that_gives_up_stops_the_worker_and_claims_nothing(make_app: MakeApp) -> None:
    app = make_app()
    result = work_of(app).delay()
    pool = HeldPool(1, blocked=True)
    with taskmq.testing.worker(app, pool=pool) as w:
        pool.given_up = "no pool child starts"
        steps(w, 5)
        assert stage(w) is Stage.STOPPED
        assert w.coordinator.exit_code == EXIT_NO_CHILDREN
    assert result.state is State.QUEUED


# -- others -----------------------------------------------------------------------------------------


def test_what_a_busy_worker_holds_goes_to_an_idle_one_and_does_not_come_back(
    make_app: MakeApp,
) -> None:
    app = make_app(poll_interval=0.05)
    work = work_of(app)
    results = [work.delay() for _ in range(6)]
    busy, idle = HeldPool(1), HeldPool(2)
    with taskmq.testing.worker(app, concurrency=1, prefetch=6, pool=busy, name="a") as a:
        a.step()
        assert a.coordinator.held.unstarted == 5
        with taskmq.testing.worker(app, concurrency=2, pool=idle, name="b") as b:
            for _ in range(12):
                b.step()
                b.clock.advance(0.03)
                a.step()
            # The two that are next go to the two free slots.
            assert idle.running() == [results[1].id, results[2].id]
            assert [idle.job(t).deliveries for t in idle.running()] == [1, 1]
            assert a.coordinator.reporter.counts["yielded"] == 0


def test_an_idle_worker_writes_nothing(make_app: MakeApp) -> None:
    app = make_app()
    url = app.config.broker_url
    if not url.startswith("sqlite"):
        pytest.skip("writes are seen from outside only on SQLite")
    with taskmq.testing.worker(app) as w:
        for _ in range(10):
            w.step()
            w.clock.advance(0.05)
        outside = sqlite3.connect(url.removeprefix("sqlite:///"))
        before = outside.execute("PRAGMA data_version").fetchone()
        for _ in range(50):
            w.step()
            w.clock.advance(0.05)
        assert outside.execute("PRAGMA data_version").fetchone() == before
        outside.close()


def test_nothing_of_a_stopped_worker_is_left(make_app: MakeApp) -> None:
    app = make_app()
    coordination = app.transport.coordination
    with taskmq.testing.worker(app, name="gone") as w:
        w.step()
        assert [info.name for info in coordination.workers()] == ["gone"]
        assert not coordination.take_duty("maintenance", "another", 10)
    assert coordination.workers() == []
    assert coordination.take_duty("maintenance", "another", 10)


def test_a_task_s_limits_are_its_message_s_else_its_own_else_the_worker_s(
    make_app: MakeApp,
) -> None:
    app = make_app(time_limit=100, soft_time_limit=90)
    limited = app.task(name="jobs.limited", time_limit=50)(lambda: None)
    plain = work_of(app)
    by_message = limited.apply_async(time_limit=5, soft_time_limit=4).id
    by_task, by_worker = limited.delay().id, plain.delay().id
    pool = HeldPool(3)
    with taskmq.testing.worker(app, concurrency=3, pool=pool) as w:
        w.step()
        limits = {t: (pool.job(t).soft_time_limit, pool.job(t).time_limit) for t in pool.running()}
    assert limits == {by_message: (4, 5), by_task: (90, 50), by_worker: (90, 100)}


def test_arguments_and_results_are_not_logged(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="taskmq.task")
    app = make_app()
    echo = app.task(name="jobs.echo")(lambda text: text)
    echo.delay("canary-of-a-secret")
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert "jobs.echo" in caplog.text
    assert "canary" not in caplog.text


def test_names_from_outside_are_escaped_in_the_log(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    app = make_app()
    work_of(app).apply_async(task_id="x\x1b]0;evil\n2026 CRITICAL forged")
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    messages = [record.getMessage() for record in caplog.records]
    assert any("\\x1b]0;evil\\n2026" in message for message in messages)
    assert not any("\x1b" in message or "\n" in message for message in messages)


def test_unenforceable_limits_are_said_once_per_task(make_app: MakeApp) -> None:
    from taskmq.pools.threads import ThreadsPool
    from taskmq.worker.banner import unenforceable

    app = make_app()
    app.task(name="jobs.hard", time_limit=5, soft_time_limit=4)(lambda: None)
    app.task(name="jobs.soft", soft_time_limit=4)(lambda: None)
    with taskmq.testing.worker(app) as w:
        rules = w.coordinator.rules
    pool = ThreadsPool(app, 1, clock=app.clock)
    (line,) = unenforceable(app, pool, rules)
    pool.stop(hand_back=False)
    assert "jobs.hard" in line
    assert "hard time limit of 5 s" in line


def test_an_end_that_a_pool_reports_twice_counts_once(make_app: MakeApp) -> None:
    app = make_app()
    result = work_of(app).delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        job = pool.job(result.id)
        pool.end(result.id)
        pool.jobs[job.number] = job
        pool.end(result.id, Ending.FAILED)
        steps(w)
    assert result.state is State.SUCCEEDED
