"""Outcomes wait until they are committed; results in a store of their own are written before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import taskmq.testing
from taskmq import App, State
from taskmq.errors import ResultUnavailable
from taskmq.message import Delivery, ResultRecord
from taskmq.transports.base import Outcome, Verb
from taskmq.worker.outbound import Outbound
from tests.support.pools import HeldPool
from tests.unit.worker.values import delivery


def report(held: Delivery, body: bytes) -> Outcome:
    record = ResultRecord(task_id=held.message.task_id, state=State.RUNNING, body=body)
    return Outcome(delivery=held, verb=Verb.REPORT, result=record)


def test_only_the_latest_progress_is_kept_and_an_ending_with_a_result_replaces_it() -> None:
    app = taskmq.testing.app()
    outbound = Outbound(app, clock=app.clock)
    held, other = delivery(), delivery()
    for body in (b"1", b"2", b"3"):
        outbound.progress(report(held, body))
    outbound.progress(report(other, b"9"))
    ended = ResultRecord(task_id=other.message.task_id, state=State.SUCCEEDED, body=b"0")
    outbound.add(Outcome(delivery=other, verb=Verb.FINISH, result=ended))
    taken = outbound.take()
    assert [(o.verb, o.result and o.result.body) for o in taken] == [
        (Verb.REPORT, b"3"),
        (Verb.FINISH, b"0"),
    ]


def test_an_ending_without_a_result_lets_the_last_progress_stand() -> None:
    app = taskmq.testing.app()
    outbound = Outbound(app, clock=app.clock)
    held = delivery()
    outbound.progress(report(held, b"9"))
    outbound.add(Outcome(delivery=held, verb=Verb.FINISH))
    assert [(o.verb, o.result and o.result.body) for o in outbound.take()] == [
        (Verb.REPORT, b"9"),
        (Verb.FINISH, None),
    ]


def test_progress_alone_is_written_at_a_bounded_rate() -> None:
    app = taskmq.testing.app()
    clock = app.clock
    outbound = Outbound(app, clock=clock)
    held = delivery()
    outbound.progress(report(held, b"1"))
    assert outbound.due(clock.monotonic())
    outbound.take()
    outbound.settled()
    outbound.progress(report(held, b"2"))
    assert not outbound.due(clock.monotonic())
    at = outbound.next_at()
    assert at is not None
    assert outbound.due(at)


def test_what_was_taken_stays_until_it_is_settled() -> None:
    app = taskmq.testing.app()
    outbound = Outbound(app, clock=app.clock)
    outbound.add(Outcome(delivery=delivery(), verb=Verb.FINISH))
    assert outbound.take() == outbound.take()
    assert len(outbound) == 1
    outbound.settled()
    assert len(outbound) == 0
    assert not outbound.due(0.0)


class Elsewhere:
    """A result store that can be down."""

    def __init__(self) -> None:
        self.down = False
        self.records: dict[str, ResultRecord] = {}
        self.writes = 0

    def put(self, records: Sequence[ResultRecord]) -> None:
        if self.down:
            raise ResultUnavailable("down")
        self.writes += 1
        self.records.update({r.task_id: r for r in records})


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    store = Elsewhere()
    monkeypatch.setattr(App, "results_with_messages", property(lambda app: False))
    monkeypatch.setattr(App, "results", property(lambda app: store))
    return store


def test_a_result_elsewhere_is_there_before_its_message_is_settled(elsewhere: Elsewhere) -> None:
    app = taskmq.testing.app()
    task_id = app.task(name="jobs.work")(lambda: None).delay().id
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        elsewhere.down = True
        pool.end(task_id, body=b"5")
        for _ in range(5):
            w.step()
            w.clock.advance(1)
        # Not settled while its result could not be stored.
        assert app.transport.operators.find(task_id)
        elsewhere.down = False
        w.clock.advance(10)
        w.step()
        w.step()
    assert elsewhere.records[task_id].body == b"5"
    assert app.transport.operators.find(task_id) == []
    assert app.transport.results.get(task_id) is None


def test_a_turn_that_fails_does_not_write_the_result_twice(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = taskmq.testing.app()
    task_id = app.task(name="jobs.work")(lambda: None).delay().id
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        turn = w.coordinator.transport.turn

        def fail(*args: Any) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(w.coordinator.transport, "turn", fail)
        pool.end(task_id, body=b"5")
        for _ in range(3):
            w.step()
            w.clock.advance(1)
        monkeypatch.setattr(w.coordinator.transport, "turn", turn)
        w.clock.advance(5)
        w.step()
    assert elsewhere.writes == 1
    assert app.transport.operators.find(task_id) == []
