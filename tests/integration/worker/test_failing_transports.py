"""A worker whose transport fails, is full or damaged: what it keeps, when it gives up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import taskmq.testing
from taskmq import State
from taskmq.errors import TransportCorrupt, TransportFull, TransportUnavailable
from taskmq.testing import VirtualWorker
from taskmq.transports.base import Turn
from taskmq.worker.exits import EXIT_CORRUPT, EXIT_FAILED
from taskmq.worker.stopping import Stage
from tests.integration.worker.conftest import MakeApp
from tests.integration.worker.stepping import stage, steps, work_of
from tests.support.pools import HeldPool


def failing(
    w: VirtualWorker, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Let every turn raise; the returned function lets them through again."""
    transport = w.coordinator.transport
    turn = transport.turn

    def fail(*args: Any) -> Turn:
        raise error

    monkeypatch.setattr(transport, "turn", fail)
    return lambda: monkeypatch.setattr(transport, "turn", turn)


@pytest.mark.parametrize("error", [TransportUnavailable("locked"), TransportFull("no room")])
def test_outcomes_wait_for_a_transport_that_answers_again(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    app = make_app()
    result = work_of(app).delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        mend = failing(w, error, monkeypatch)
        pool.end(result.id, body=b"5")
        for _ in range(4):
            w.step()
            w.clock.advance(10)
        assert result.state is State.RUNNING
        mend()
        w.clock.advance(10)
        steps(w)
    assert result.get(timeout=0) == 5


def test_an_error_of_the_adapter_s_own_does_not_end_the_worker(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    result = work_of(app).delay()
    with taskmq.testing.worker(app) as w:
        mend = failing(w, ZeroDivisionError("a fault"), monkeypatch)
        steps(w)
        mend()
        w.clock.advance(10)
        w.run_until_idle()
    assert result.state is State.SUCCEEDED


def test_a_full_store_is_settled_first_and_nothing_new_is_taken(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    work = work_of(app)
    first, _second = work.delay(), work.delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        mend = failing(w, TransportFull("no room"), monkeypatch)
        pool.end(first.id)
        w.step()
        mend()
        asked: list[Any] = []
        turn = w.coordinator.transport.turn

        def watched(outcomes: Any, request: Any) -> Turn:
            asked.append(request)
            return turn(outcomes, request)

        monkeypatch.setattr(w.coordinator.transport, "turn", watched)
        w.clock.advance(1)
        steps(w, 2)
    assert asked[0] is None
    assert asked[1] is not None


def test_a_damaged_store_ends_the_worker(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app()
    with taskmq.testing.worker(app) as w:
        failing(w, TransportCorrupt("page 5"), monkeypatch)
        steps(w)
        assert stage(w) is Stage.STOPPED
        assert w.coordinator.exit_code == EXIT_CORRUPT


def test_the_watchdog_ends_a_worker_whose_transport_stays_away(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(watchdog=20)
    with taskmq.testing.worker(app) as w:
        failing(w, TransportUnavailable("gone"), monkeypatch)
        # The rest of the transport is gone with it.
        for name in ("commands", "report", "take_duty", "workers"):
            monkeypatch.setattr(
                type(w.coordinator.transport.coordination),
                name,
                lambda *args, **kwargs: (_ for _ in ()).throw(TransportUnavailable("gone")),
            )
        for _ in range(100):
            w.step()
            w.clock.advance(2)
            if stage(w) is Stage.STOPPED:
                break
        assert w.coordinator.exit_code == EXIT_FAILED


def test_outcomes_that_cannot_be_settled_at_the_end_are_said_and_given_up(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(watchdog=0, drain_timeout=1)
    result = work_of(app).delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        mend = failing(w, TransportUnavailable("gone"), monkeypatch)
        w.coordinator.stop("SIGTERM")
        for _ in range(20):
            w.step()
            w.clock.advance(1)
        assert stage(w) is Stage.STOPPED
        assert w.coordinator.exit_code == EXIT_FAILED
        assert "1 outcome could not be settled" in caplog.text
        mend()
    assert result.state is State.RUNNING  # until its lease ends
