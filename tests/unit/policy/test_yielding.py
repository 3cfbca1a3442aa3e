"""Whom to hand back when something more urgent waits, against a brute-force choice (G2, P12-P14)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.message import Delivery, Message
from taskmq.policy.yielding import stays_yieldable, to_yield, yield_delay

QUICK = settings(max_examples=100, deadline=None)
PRIORITIES = st.integers(-9, 9)


def delivery(
    effective: int, seq: int, *, at: float = 1.0, yieldable: bool = True, started: bool = False
) -> Delivery:
    return Delivery(
        message=Message(message_id=str(seq), task_id="t", task="a", queue="q", body=b""),
        token=seq,
        seq=seq,
        visible_at=at,
        lease_until=9.0,
        effective=effective,
        yieldable=yieldable,
        started=started,
    )


deliveries = st.lists(
    st.tuples(PRIORITIES, st.sampled_from([1.0, 2.0]), st.booleans(), st.booleans()), max_size=8
).map(
    lambda rows: [
        delivery(priority, seq, at=at, yieldable=yieldable, started=started)
        for seq, (priority, at, yieldable, started) in enumerate(rows)
    ]
)


@given(deliveries, st.none() | PRIORITIES, st.integers(-2, 2), st.integers(1, 18))
@QUICK
def test_fewest_and_least_urgent_that_make_room(
    held: list[Delivery], peeked: int | None, room: int, delta: int
) -> None:
    chosen = to_yield(held, peeked=peeked, room=room, min_delta=delta)

    may_go = [
        d
        for d in held
        if d.yieldable and not d.started and peeked is not None and peeked - d.effective >= delta
    ]
    if room > 0 or not may_go:
        assert chosen == []
        return
    (one,) = chosen
    assert one in may_go
    assert all(d is one or d.sort_key < one.sort_key for d in may_go)


@pytest.mark.parametrize(
    ("peeked", "delta", "yields"),
    [(5, 1, False), (6, 1, True), (6, 2, False), (7, 2, True), (4, 1, False), (9, 4, True)],
)
def test_difference_must_reach_min_delta(peeked: int, delta: int, yields: bool) -> None:
    chosen = to_yield([delivery(5, 1)], peeked=peeked, room=0, min_delta=delta)

    assert bool(chosen) is yields


def test_latest_of_equals_goes_first() -> None:
    held = [delivery(0, 1, at=1.0), delivery(0, 3, at=1.0), delivery(0, 2, at=1.0)]

    assert to_yield(held, peeked=9, room=0) == [held[1]]


def test_one_that_may_not_yield_is_passed_over() -> None:
    held = [delivery(-9, 1, yieldable=False), delivery(-8, 2, started=True), delivery(3, 3)]

    assert to_yield(held, peeked=9, room=0) == [held[2]]


def test_yielding_in_a_loop_hands_back_one_for_each_urgent_message() -> None:
    """The worker yields, reserves and looks again: as many go as urgent ones came, no more."""
    held = [delivery(0, seq) for seq in range(8)]
    urgent = [delivery(9, 100), delivery(9, 101)]

    handed_back = 0
    while urgent:
        (one,) = to_yield(held, peeked=9, room=0)
        held.remove(one)
        held.append(urgent.pop())
        handed_back += 1
    assert to_yield(held, peeked=0, room=0) == []

    assert handed_back == 2
    assert [d.seq for d in held if d.effective == 0] == [0, 1, 2, 3, 4, 5]


@given(st.floats(0, 100), st.integers())
@QUICK
def test_delay_is_the_configured_one_plus_up_to_half(base: float, seed: int) -> None:
    assert base <= yield_delay(base, Random(seed)) <= base * 1.5


def test_delays_of_deliveries_yielded_together_differ() -> None:
    random = Random(1)

    assert len({yield_delay(0.1, random) for _ in range(8)}) == 8


@pytest.mark.parametrize(("yields", "stays"), [(0, True), (99, True), (100, False), (101, False)])
def test_message_yields_at_most_max_yields_times(yields: int, stays: bool) -> None:
    assert stays_yieldable(yields, 100) is stays
