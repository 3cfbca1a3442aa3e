"""Which bands a slot may take from, and which head is next, against a brute-force model (G1, P2, P17)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.policy.bands import OPEN, Budget, Head, Window, local_first, top_band

QUICK = settings(max_examples=100, deadline=None)
PRIORITIES = st.integers(-9, 9)
ALL = range(-9, 10)

heads = st.lists(
    st.builds(
        Head,
        queue=st.sampled_from("abc"),
        lane=st.integers(0, 2),
        effective=PRIORITIES,
        visible_at=st.sampled_from([1.0, 2.0, 3.0]),
        seq=st.integers(1, 10**6),
    ),
    max_size=12,
    unique_by=lambda head: head.seq,
)
windows = st.builds(lambda a, b: Window(min(a, b), max(a, b)), PRIORITIES, PRIORITIES) | st.just(
    Window()
)


@given(heads, windows)
@QUICK
def test_next_head_is_the_best_one_inside_the_window(found: list[Head], window: Window) -> None:
    best = top_band(found, window)

    inside = sorted(
        (h for h in found if window.low <= h.effective <= window.high),
        key=lambda h: (-h.effective, h.visible_at, h.seq),
    )
    assert best == [h for h in inside if h.effective == inside[0].effective]


def test_queues_do_not_rank_across_bands() -> None:
    low = Head("vip", 0, 0, 1.0, 1)
    high = Head("slow", 0, 1, 9.0, 2)

    assert top_band([low, high], Window()) == [high]


def test_sort_key_is_priority_then_time_then_sequence() -> None:
    ordered = [Head("q", 0, p, t, s) for p in (9, 0, -9) for t in (1.0, 2.0) for s in (1, 2)]

    mixed = ordered[::-1]
    mixed.sort(key=lambda h: h.sort_key)
    assert mixed == ordered


@pytest.mark.parametrize(
    ("local", "stored", "first"),
    [
        (None, None, False),
        (None, -9, False),
        (-9, None, True),
        (0, 0, True),
        (1, 0, True),
        (0, 1, False),
    ],
)
def test_held_delivery_goes_first_unless_the_store_has_a_more_urgent_one(
    local: int | None, stored: int | None, first: bool
) -> None:
    assert local_first(local, stored) is first


@given(
    slots=st.integers(1, 6),
    normal=st.integers(0, 6),
    urgent=st.integers(0, 6),
    threshold=PRIORITIES,
    waiting=st.lists(PRIORITIES, max_size=12),
    running=st.lists(PRIORITIES, max_size=6),
)
@QUICK
def test_reserved_slots_stay_free_whatever_waits(
    slots: int, normal: int, urgent: int, threshold: int, waiting: list[int], running: list[int]
) -> None:
    running = running[:slots]
    before = list(running)
    budget = Budget.of(
        slots=slots,
        normal_reserved=normal,
        urgent_reserved=urgent,
        threshold=threshold,
        running=running,
    )

    while len(running) < slots and waiting:
        window = budget.window()
        fits = [p for p in waiting if window is not None and window.admits(p)]
        if not fits:
            break
        chosen = max(fits)
        assert budget.room(chosen) is None or budget.room(chosen) > 0  # type: ignore[operator]
        waiting.remove(chosen)
        running.append(chosen)
        budget = budget.take(chosen)

    def count(of: list[int], what: str) -> int:
        return sum(p > 0 if what == "above" else p < threshold for p in of)

    if normal:
        assert count(running, "above") <= max(slots - normal, count(before, "above"))
    if urgent:
        assert count(running, "below") <= max(slots - urgent, count(before, "below"))
    # And no slot stays free for nothing: whatever still waits belongs to a class that is used up.
    if len(running) < slots:
        for priority in waiting:
            above_full = normal and priority > 0 and count(running, "above") >= slots - normal
            below_full = (
                urgent and priority < threshold and count(running, "below") >= slots - urgent
            )
            assert above_full or below_full, priority


@pytest.mark.parametrize("threshold", [-9, 0, 1, 5, 9])
@pytest.mark.parametrize("priority", ALL)
def test_taking_a_slot_leaves_what_counting_again_would(priority: int, threshold: int) -> None:
    def left(running: list[int]) -> Budget:
        return Budget.of(
            slots=9, normal_reserved=2, urgent_reserved=3, threshold=threshold, running=running
        )

    assert left([]).take(priority) == left([priority])
    assert left([priority]).take(priority) == left([priority, priority])


@given(st.none() | st.integers(0, 3), st.none() | st.integers(0, 3), PRIORITIES)
@QUICK
def test_window_admits_exactly_the_bands_that_have_room(
    above: int | None, below: int | None, threshold: int
) -> None:
    budget = Budget(above, below, threshold)
    window = budget.window()

    for priority in ALL:
        room = budget.room(priority)
        fits = (above is None or priority <= 0 or above > 0) and (
            below is None or priority >= threshold or below > 0
        )
        assert (room is None or room > 0) is fits
        assert (window is not None and window.admits(priority)) is fits


def test_budget_without_reserved_slots_is_open() -> None:
    budget = Budget.of(slots=2, normal_reserved=0, urgent_reserved=0, threshold=5, running=[9, 9])

    assert not budget.bounded
    assert budget == OPEN
    assert budget.window() == Window(-9, 9)
    assert budget.take(9).room(9) is None


def test_more_running_than_the_budget_allows_leaves_no_room() -> None:
    budget = Budget.of(slots=4, normal_reserved=2, urgent_reserved=0, threshold=5, running=[9] * 4)

    assert budget.room(1) == 0
    assert budget.window() == Window(-9, 0)


def test_both_budgets_used_up_close_every_band() -> None:
    assert Budget(0, 0, 5).window() is None
    assert Budget(0, 0, -3).window() == Window(-3, 0)


def test_every_pair_of_bounds_is_a_window() -> None:
    for low, high in itertools.product(ALL, ALL):
        assert [p for p in ALL if Window(low, high).admits(p)] == list(range(low, high + 1))
