"""One transaction does a bounded amount of work, says `more`, and hides nothing more urgent meanwhile."""

from __future__ import annotations

import pytest

from taskmq.message import Rate
from taskmq.policy.limits import BOOKINGS_PER_TURN
from taskmq.states import State
from taskmq.transports.base import QueueShare
from taskmq.transports.sqlite import claim, due, order, peek, purging, sweeping


def many(bench, count: int, name: str = "m", **fields) -> None:
    bench.transport.submit([bench.message(f"{name}{n}", **fields) for n in range(count)])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same caps, some hundred times smaller."""
    monkeypatch.setattr(due, "PROMOTED_PER_TURN", 5)
    monkeypatch.setattr(due, "LOOKED_AT", 5)
    monkeypatch.setattr(claim, "ENDED_PER_TURN", 4)
    monkeypatch.setattr(claim, "_MORE_ROWS", 2)
    monkeypatch.setattr(peek, "PASSED_OVER", 4)
    monkeypatch.setattr(sweeping, "AT_ONCE", 3)
    monkeypatch.setattr(purging, "_AT_ONCE", 3)
    monkeypatch.setattr(purging, "_SCANNED", 4)
    monkeypatch.setattr(order, "_PAGE", 3)


pytestmark = pytest.mark.usefixtures("small")


def test_a_storm_of_due_messages_is_moved_in_steps_that_ask_for_more(bench) -> None:
    many(bench, 12, eta=bench.clock.now() + 1)
    bench.clock.advance(2)

    turns = [bench.transport.turn((), bench.request()) for _ in range(4)]

    assert [turn.more for turn in turns] == [True, True, False, False]
    assert [len(turn.deliveries) for turn in turns] == [1, 1, 1, 1]


def test_a_storm_below_does_not_hide_what_is_more_urgent(bench) -> None:
    many(bench, 12, eta=bench.clock.now() + 1)
    bench.submit("urgent", priority=9, eta=bench.clock.now() + 1.5)
    bench.clock.advance(2)

    (first,) = bench.transport.turn((), bench.request()).deliveries

    assert first.message.task_id == "urgent"


def test_expired_heads_are_ended_in_steps_that_ask_for_more(bench) -> None:
    many(bench, 10, expires_at=bench.clock.now() + 1)
    bench.submit("alive")
    bench.clock.advance(2)

    turns = [bench.transport.turn((), bench.request()) for _ in range(3)]

    assert [turn.more for turn in turns] == [True, True, False]
    assert [d.message.task_id for t in turns for d in t.deliveries] == ["alive"]
    assert {bench.state(f"m{n}") for n in range(10)} == {State.EXPIRED}


def test_peek_passes_over_expired_heads_within_reason(bench) -> None:
    many(bench, 3, priority=5, expires_at=bench.clock.now() + 1)
    bench.submit("five", priority=5)
    bench.submit("three", priority=3)
    bench.clock.advance(2)
    assert bench.peek() == 5

    many(bench, 8, "more", priority=7, expires_at=bench.clock.now() + 1)
    bench.clock.advance(2)
    # Seven holds nothing but expired ones; it is left out, not waited for.
    assert bench.peek() == 5


def test_next_due_is_exact_among_a_few_and_never_late_among_many(bench) -> None:
    now = bench.clock.now()
    bench.submit("ours", queue="q", eta=now + 50)
    bench.submit("theirs", queue="other", eta=now + 10)
    assert bench.transport.next_due((QueueShare("q"),)) == now + 50

    many(bench, 10, "theirs", queue="other", eta=now + 20)
    found = bench.transport.next_due((QueueShare("q"),))
    assert found is not None
    assert found <= now + 50


def test_next_due_of_queues_without_any_is_none(bench) -> None:
    bench.submit("theirs", queue="other", eta=bench.clock.now() + 10)

    assert bench.transport.next_due((QueueShare("q"),)) is None


def test_a_sweep_of_many_asks_for_more(bench) -> None:
    many(bench, 7, expires_at=bench.clock.now() + 1)
    bench.clock.advance(2)

    swept = [bench.transport.coordination.sweep() for _ in range(4)]

    assert [s.done for s in swept] == [3, 3, 1, 0]
    assert [s.more for s in swept] == [True, True, False, False]


def test_a_purge_goes_on_until_nothing_is_left_and_spares_the_others(bench) -> None:
    many(bench, 10)
    many(bench, 10, "late", eta=bench.clock.now() + 9)
    many(bench, 5, "other", queue="other", eta=bench.clock.now() + 9)
    held = bench.take()

    assert bench.transport.operators.purge("q") == 19
    assert [row.queue for row in bench.transport.operators.depth()] == ["other", "q"]
    assert bench.finish(held)
    assert bench.transport.operators.purge("other") == 5
    assert bench.transport.operators.depth() == []


def test_peeking_reads_page_after_page(bench) -> None:
    many(bench, 20)

    found = bench.transport.operators.peek((QueueShare("q"),), 15)

    assert [p.message.task_id for p in found] == [f"m{n}" for n in range(15)]


def test_bookings_of_one_turn_end_with_the_lane_closed(bench) -> None:
    many(bench, BOOKINGS_PER_TURN + 10, rate=Rate("r", 1.0))

    assert len(bench.reserve(2)) == 1
    booked = [row.scheduled for row in bench.transport.operators.depth()]
    assert booked == [BOOKINGS_PER_TURN]
    # The lane is closed: the next turn finds nothing to do, and takes no lock to find that out.
    assert bench.transport._idle(bench.request())

    bench.clock.advance(BOOKINGS_PER_TURN + 1)
    assert not bench.transport._idle(bench.request())
