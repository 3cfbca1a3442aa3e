"""A turn that took longer than its leases allow: nothing starts that somebody else may have by now (I2)."""

from __future__ import annotations

from typing import Any

import pytest

import taskmq.testing
from taskmq import App, State
from taskmq.errors import TransportUnavailable
from tests.integration.worker.conftest import MakeApp
from tests.integration.worker.stepping import work_of
from tests.support.pools import HeldPool


def pausing(monkeypatch: pytest.MonkeyPatch, app: App, pause: Any) -> None:
    """Have `pause` called between the commit of the next turn that reserves and its answer."""
    turn = app.transport.turn
    paused: list[bool] = []

    def then_pause(*arguments: Any) -> Any:
        answer = turn(*arguments)
        if answer.deliveries and not paused:
            paused.append(True)
            pause()
        return answer

    monkeypatch.setattr(app.transport, "turn", then_pause)


def test_what_was_lost_while_the_worker_was_stopped_is_not_started(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(lease=30.0)
    result = work_of(app).delay()
    mine, theirs = HeldPool(1), HeldPool(1)
    with (
        taskmq.testing.worker(app, pool=mine, name="a") as a,
        taskmq.testing.worker(app, pool=theirs, name="b") as b,
    ):

        def stopped() -> None:
            for _ in range(30):
                b.clock.advance(5)
                b.step()

        pausing(monkeypatch, app, stopped)
        a.step()

        assert theirs.running() == [result.id]
        assert mine.running() == []
        assert a.coordinator.reporter.counts["lost"] == 1
        assert len(a.coordinator.held) == 0


def test_what_is_still_ours_after_a_pause_is_renewed_and_started(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(lease=30.0)
    result = work_of(app).delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        pausing(monkeypatch, app, lambda: w.clock.advance(29))
        w.step()

        assert pool.running() == [result.id]


def test_nothing_starts_when_nobody_says_whose_it_is(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(lease=30.0)
    result = work_of(app).delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:

        def away(*arguments: Any) -> Any:
            raise TransportUnavailable("gone")

        def pause() -> None:
            w.clock.advance(29)
            monkeypatch.setattr(app.transport, "extend", away)

        pausing(monkeypatch, app, pause)
        w.step()
        assert pool.running() == []

        monkeypatch.undo()
        for _ in range(30):
            w.clock.advance(5)
            w.step()
        assert pool.running() == [result.id]
        assert result.state is State.RUNNING
