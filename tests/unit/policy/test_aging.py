"""Aging: one level per interval of waiting, capped, never above 9 (P4)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.policy.aging import Aging

QUICK = settings(max_examples=100, deadline=None)
PRIORITIES = st.integers(-9, 9)


@given(
    priority=PRIORITIES,
    interval=st.integers(1, 100),
    cap=st.integers(0, 18),
    waited=st.integers(-100, 10_000),
)
@QUICK
def test_effective_priority_counts_whole_intervals(
    priority: int, interval: int, cap: int, waited: int
) -> None:
    levels = 0
    while levels < cap and (levels + 1) * interval <= waited:
        levels += 1

    effective = Aging(float(interval), cap).effective(priority, 1000.0, 1000.0 + waited)

    assert effective == min(9, priority + levels)


@given(PRIORITIES, st.floats(0.001, 1e6), st.floats(0, 1e9), st.floats(0, 1e9))
@QUICK
def test_waiting_longer_never_lowers(
    priority: int, interval: float, sooner: float, more: float
) -> None:
    aging = Aging(interval)

    before = aging.effective(priority, 0.0, sooner)
    after = aging.effective(priority, 0.0, sooner + more)

    assert priority <= before <= after <= 9


def test_first_of_a_band_has_waited_longest() -> None:
    """Why the head of each band is enough: nobody behind it in the band can have risen further."""
    aging = Aging(10.0)

    levels = [aging.effective(0, visible_at, 100.0) for visible_at in range(0, 100, 5)]

    assert levels == sorted(levels, reverse=True)


def test_low_message_overtakes_after_a_bounded_wait() -> None:
    aging = Aging(60.0, cap=9)

    assert aging.effective(-9, 0.0, 9 * 60.0 - 1) == -1
    assert aging.effective(0, 0.0, 9 * 60.0) == 9
