"""Rate limits and concurrency keys as eligibility, against simulations (P8, P18)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.errors import ConfigError
from taskmq.policy.limits import (
    Holder,
    RateState,
    admit,
    adopt_interval,
    as_of,
    close_lane,
    emptied,
    rate_interval,
    start_booked,
    take_token,
)

QUICK = settings(max_examples=100, deadline=None)
SortKey = tuple[int, float, int]


@pytest.mark.parametrize(
    ("rate", "interval"),
    [
        (None, None),
        (0, None),
        ("0", None),
        ("0/m", None),
        (5, 0.2),
        (0.5, 2.0),
        ("10", 0.1),
        ("2/s", 0.5),
        ("10/m", 6.0),
        (" 1.5 / h ", 2400.0),
        ("1/d", 86400.0),
    ],
)
def test_rate_is_read_in_celerys_forms(rate: Any, interval: float | None) -> None:
    assert rate_interval(rate, "here") == (None if interval is None else pytest.approx(interval))


@pytest.mark.parametrize(
    "rate", ["", "fast", "10/y", "-1/s", -1, True, "1e3", float("nan"), [], "1/m/s"]
)
def test_rate_that_cannot_be_read_names_value_and_place(rate: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"^task a: a rate is a number per second or like '10/m'"
    ) as e:
        rate_interval(rate, "task a")

    assert repr(rate) in str(e.value)


@given(
    st.floats(0.01, 100),
    st.lists(st.floats(0, 50), min_size=1, max_size=40),
)
@QUICK
def test_two_starts_are_never_closer_than_the_interval(interval: float, waits: list[float]) -> None:
    now, state, starts = 1000.0, RateState(), []
    for wait in waits:
        now += wait
        at, state = take_token(state, interval, now)
        assert at >= now
        starts.append(at)

    assert all(b - a >= interval * (1 - 1e-9) for a, b in itertools.pairwise(starts))


@given(st.integers(1, 100), st.lists(st.integers(0, 50), min_size=1, max_size=40))
@QUICK
def test_tokens_go_by_the_order_of_asking_and_none_is_wasted(
    interval: int, waits: list[int]
) -> None:
    now, state, free_at = 1000, RateState(), 0
    for wait in waits:
        now += wait
        at, state = take_token(state, float(interval), float(now))

        assert at == max(now, free_at), "it starts when it asks, or when the one before it allows"
        free_at = int(at) + interval


@given(st.floats(0.01, 10), st.floats(0, 100))
@QUICK
def test_has_token_says_whether_one_is_free_at_once(interval: float, wait: float) -> None:
    _, state = take_token(RateState(), interval, 1000.0)
    now = 1000.0 + wait

    at, _ = take_token(state, interval, now)

    assert state.has_token(now) is (at == now)


class Limiter:
    """Messages of one rate key: some ask for the first time, those booked come back when they can."""

    def __init__(self) -> None:
        self.state = RateState()
        self.booked: list[float] = []
        self.starts: list[float] = []

    def ask(self, interval: float, now: float) -> None:
        at, self.state = take_token(self.state, interval, now)
        if at > now:
            self.booked.append(at)
        else:
            self.starts.append(now)

    def come_back(self, now: float) -> None:
        for at in sorted(self.booked):
            if at <= now and self.state.may_start(now):
                self.booked.remove(at)
                self.state = start_booked(self.state, now)
                self.starts.append(now)


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 5), st.booleans()), max_size=40),
)
@QUICK
def test_never_more_than_one_start_per_interval_whatever_the_gaps(
    interval: int, visits: list[tuple[int, int, bool]]
) -> None:
    now, limiter = 1000, Limiter()
    for gap, fresh, booked_first in visits:
        now += gap
        if booked_first:
            limiter.come_back(now)
        for _ in range(fresh):
            limiter.ask(interval, now)
        limiter.come_back(now)

    assert all(b - a >= interval for a, b in itertools.pairwise(limiter.starts))
    asked = sum(fresh for _, fresh, _ in visits)
    while limiter.booked:
        now += interval
        before = len(limiter.starts)
        limiter.come_back(now)
        due = any(at <= now for at in limiter.booked)
        assert not due or len(limiter.starts) == before + 1, "a due one waits while it could start"
    assert len(limiter.starts) == asked


@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.sampled_from([5, 20, 60]), st.integers(0, 4)), max_size=30
    )
)
@QUICK
def test_a_limit_that_changes_on_the_way_keeps_the_starts_apart(
    visits: list[tuple[int, int, int]],
) -> None:
    now, limiter = 1000, Limiter()
    for gap, interval, fresh in visits:
        now += gap
        for _ in range(fresh):
            limiter.state = adopt_interval(limiter.state, interval, now)
            limiter.ask(interval, now)
        limiter.come_back(now)

    assert all(b - a >= 5 for a, b in itertools.pairwise(limiter.starts))


def test_a_changed_limit_waits_for_no_token_of_the_old_one() -> None:
    state = RateState()
    for _ in range(64):
        booked, state = take_token(state, 3600.0, 1000.0)
    state = adopt_interval(close_lane(state, booked), 10.0, 1005.0)

    assert not state.closed(1005.0)
    assert take_token(state, 10.0, 1005.0)[0] == 1015.0
    assert adopt_interval(state, 10.0, 1006.0) is state


def test_an_emptied_limit_keeps_only_its_pace() -> None:
    state = RateState()
    for _ in range(64):
        booked, state = take_token(state, 10.0, 1000.0)
    state = emptied(close_lane(state, booked))

    assert take_token(state, 10.0, 1005.0)[0] == 1010.0


def test_a_start_yet_to_come_means_that_the_clock_was_set_back() -> None:
    _, state = take_token(RateState(), 10.0, 5000.0)
    state = close_lane(state, 6000.0)

    assert as_of(state, 5000.0) == state
    assert as_of(state, 1400.0) == RateState(interval=10.0)


def test_a_state_is_forgotten_only_when_nothing_was_due_for_long() -> None:
    _, state = take_token(RateState(), 10.0, 1000.0)

    assert not state.forgettable(1109.9, 100.0)
    assert state.forgettable(1110.0, 100.0)


def test_closed_lane_opens_at_the_last_booked_time() -> None:
    state = RateState()
    booked = 0.0
    for _ in range(64):
        booked, state = take_token(state, 1.0, 1000.0)
    state = close_lane(state, booked)

    assert booked == 1063.0
    assert state.closed(1062.9)
    assert not state.has_token(1062.9)
    assert not state.closed(1063.0)
    assert take_token(state, 1.0, 1063.0)[0] == 1064.0, "bookings before the closing still count"


def test_key_with_room_admits() -> None:
    assert admit((0, 1.0, 1), [], 1) == (True, None)
    assert admit((9, 1.0, 2), [Holder(1, (-9, 1.0, 1), False)], 2) == (True, None)


def test_running_holder_never_gives_way() -> None:
    assert admit((-9, 1.0, 2), [Holder(1, (9, 1.0, 1), swappable=False)], 1) == (False, None)


def test_equal_arrival_waits_behind() -> None:
    assert admit((0, 1.0, 2), [Holder(1, (0, 1.0, 1), swappable=True)], 1) == (False, None)


keys = st.tuples(st.integers(-9, 9).map(lambda p: -p), st.sampled_from([1.0, 2.0]))


@given(
    arrivals=st.lists(keys, max_size=20),
    reserve_after=st.lists(st.integers(0, 20), max_size=6),
    limit=st.integers(1, 3),
)
@QUICK
def test_key_is_held_by_the_best_arrivals_and_never_by_more_than_the_limit(
    arrivals: list[tuple[int, float]], reserve_after: list[int], limit: int
) -> None:
    holders: list[Holder] = []
    blocked: list[SortKey] = []
    fixed: list[int] = []
    for seq, (band, at) in enumerate(arrivals):
        arrival = (band, at, seq)
        admitted, out = admit(arrival, holders, limit)
        if out is not None:
            swapped = next(h for h in holders if h.seq == out)
            assert swapped.swappable
            assert admitted
            holders.remove(swapped)
            blocked.append(swapped.sort_key)
        if admitted:
            holders.append(Holder(seq, arrival, swappable=True))
        else:
            blocked.append(arrival)
        if seq in reserve_after:
            first = min((h for h in holders if h.swappable), key=lambda h: h.sort_key, default=None)
            if first is not None:
                holders[holders.index(first)] = first._replace(swappable=False)
                fixed.append(first.seq)

        assert len(holders) <= limit
        # Nobody blocked is better than somebody who could still give way.
        waiting = [h.sort_key for h in holders if h.swappable]
        if waiting and blocked:
            assert max(waiting) < min(blocked)
        if blocked:
            assert len(holders) == limit, "one waits while the key has room"
        assert set(fixed) <= {h.seq for h in holders}
