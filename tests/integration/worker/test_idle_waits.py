"""How long an idle worker waits for work at most (P15)."""

from __future__ import annotations

from typing import Any

import pytest

import taskmq.testing
from taskmq import App
from taskmq.worker import loop
from tests.integration.worker.conftest import MakeApp


def longest_wait(app: App, monkeypatch: pytest.MonkeyPatch) -> float:
    """The timeout of the wait that an idle worker begins."""
    waits: list[float] = []

    def wait(timeout: float, fds: Any = ()) -> None:
        waits.append(timeout)

    with taskmq.testing.worker(app) as worker:
        # Its row is written a little after the first step; then nothing is left to do.
        worker.step()
        worker.clock.advance(1.0)
        worker.step()
        monkeypatch.setattr(app.transport, "wait", wait)
        loop.wait(worker.coordinator)
    (only,) = waits
    return only


def test_a_transport_that_looks_by_itself_is_waited_for_longer(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(poll_interval=0.02)
    looks = app.transport.looks_every is not None

    assert longest_wait(app, monkeypatch) == pytest.approx(0.25 if looks else 0.02)


def test_where_time_alone_brings_work_every_look_is_a_whole_one(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(poll_interval=0.02, aging_interval=60.0)

    assert longest_wait(app, monkeypatch) == pytest.approx(0.02)


def test_a_transport_that_looks_less_often_than_asked_is_not_relied_on(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(poll_interval=0.02)
    monkeypatch.setattr(app.transport, "looks_every", 0.05)

    assert longest_wait(app, monkeypatch) == pytest.approx(0.02)


def test_an_idle_worker_waits_no_longer_than_until_the_next_message_is_due(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(poll_interval=0.2)
    app.task(name="jobs.work")(lambda: None).apply_async(countdown=1.125)

    assert longest_wait(app, monkeypatch) == pytest.approx(0.125, abs=0.01)
