"""What a worker's log and its row say, read by somebody who does not know its inside."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import taskmq.testing
from taskmq import App
from taskmq.testing import VirtualWorker
from taskmq.worker.options import WorkerOptions
from taskmq.worker.worker import Worker
from tests.integration.worker.conftest import MakeApp
from tests.support.pools import HeldPool


@pytest.fixture(autouse=True)
def _everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def work_of(app: App, body: Any = lambda: None) -> Any:
    return app.task(name="jobs.work")(body)


def steps(w: VirtualWorker) -> None:
    for _ in range(3):
        w.step()


def test_a_second_request_is_offered_and_its_end_is_not_called_a_deadline(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(drain_timeout=25)
    work_of(app).delay()
    with taskmq.testing.worker(app, pool=HeldPool(1)) as w:
        w.step()
        w.coordinator.stop("SIGINT")
        steps(w)
        assert "1 task runs and has 25 s to end. A second signal stops at once" in caplog.text
        w.coordinator.stop("SIGINT")
        steps(w)
    assert "1 task still runs and is stopped now (asked again)" in caplog.text
    assert "deadline" not in caplog.text


def test_a_drain_that_takes_too_long_says_that_its_time_is_over(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(drain_timeout=10)
    task = work_of(app)
    for _ in range(2):
        task.delay()
    with taskmq.testing.worker(app, pool=HeldPool(2), concurrency=2) as w:
        w.step()
        w.coordinator.stop("SIGTERM")
        steps(w)
        w.clock.advance(11)
        steps(w)
    assert "2 tasks still run and are stopped now (the time to drain is over)" in caplog.text


def test_a_failure_is_told_with_what_was_raised_and_no_reason_beside_it(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("boom")

    app = make_app()
    result = work_of(app, fail).delay()
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert f"task jobs.work[{result.id}] failed: ValueError: boom" in caplog.text


def test_a_busy_worker_that_renews_its_leases_reports_a_fresh_poll(make_app: MakeApp) -> None:
    app = make_app(lease=30.0)
    work_of(app).delay()
    with taskmq.testing.worker(app, pool=HeldPool(1)) as w:
        w.step()
        for _ in range(60):
            w.clock.advance(5)
            w.step()
        (row,) = app.transport.coordination.workers()
        assert row.seen_at - row.last_poll_at <= app.config.lease / 2


def test_at_the_end_it_is_told_how_runs_ended(make_app: MakeApp) -> None:
    def fail() -> None:
        raise ValueError("boom")

    app = make_app()
    good, bad = work_of(app), app.task(name="jobs.fail")(fail)
    with taskmq.testing.worker(app) as w:
        before = w.coordinator.reporter.summary()
        for task in (good, good, bad):
            task.delay()
        w.run_until_idle()
        after = w.coordinator.reporter.summary()
    assert (before, after) == ("nothing was run", "2 succeeded, 1 failed")


def test_a_worker_says_at_its_end_how_runs_ended(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app()
    worker = Worker(app, WorkerOptions(pool="solo"))
    work_of(app, lambda: worker.stop("enough")).delay()
    assert worker.run() == 0
    assert "stopped: 1 succeeded" in caplog.messages
