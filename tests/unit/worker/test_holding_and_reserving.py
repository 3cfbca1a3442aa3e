"""What a worker holds, and so what it asks for: prefetch counts running and unstarted alike (P16)."""

from __future__ import annotations

import pytest

from taskmq.config import Config
from taskmq.transports.base import ReserveRequest
from taskmq.worker.holding import Holding
from taskmq.worker.options import WorkerOptions
from taskmq.worker.reserving import Reserving
from taskmq.worker.rules import resolve
from tests.unit.worker.values import delivery


def holding(*, running: int, unstarted: int) -> Holding:
    held = Holding()
    for _ in range(running):
        held.begin(delivery(), started_at=0.0)
    for _ in range(unstarted):
        held.hold(delivery(started=False))
    return held


def asked(
    held: Holding, *, slots: int, prefetch: int, free: int, may_prefetch: bool = True
) -> ReserveRequest | None:
    rules = resolve(Config(), WorkerOptions(concurrency=slots, prefetch=prefetch), "w")
    return Reserving(rules, held).request(free, prefetch=may_prefetch)


@pytest.mark.parametrize(
    ("slots", "prefetch", "running", "unstarted", "expected"),
    [
        (2, 2, 0, 0, (2, 0)),  # the default: nothing is held that cannot start
        (2, 2, 1, 0, (1, 0)),
        (2, 2, 2, 0, None),
        (2, 6, 0, 0, (2, 4)),
        (2, 6, 2, 0, (0, 4)),
        (2, 6, 2, 4, None),
        (2, 6, 1, 4, (1, 0)),  # full but for the slot, which takes the better of both heads
        (2, 6, 1, 5, (1, 0)),
        (4, 1, 0, 0, (1, 0)),  # less prefetch than slots: so many run
        (4, 1, 1, 0, None),
    ],
)
def test_slots_and_room_never_exceed_the_prefetch(
    slots: int, prefetch: int, running: int, unstarted: int, expected: tuple[int, int] | None
) -> None:
    held = holding(running=running, unstarted=unstarted)
    request = asked(held, slots=slots, prefetch=prefetch, free=slots - running)
    assert (request and (request.slots, request.room)) == expected


def test_nothing_is_prefetched_while_others_are_idle() -> None:
    held = holding(running=1, unstarted=0)
    request = asked(held, slots=2, prefetch=8, free=1, may_prefetch=False)
    assert request is not None
    assert (request.slots, request.room) == (1, 0)
    full = holding(running=2, unstarted=0)
    assert asked(full, slots=2, prefetch=8, free=0, may_prefetch=False) is None


def test_a_free_slot_may_take_what_is_held_the_most_urgent_first() -> None:
    held = holding(running=0, unstarted=0)
    for priority, seq in ((0, 1), (5, 2), (0, 3), (9, 4)):
        held.hold(delivery(priority, seq=seq, started=False))
    request = asked(held, slots=1, prefetch=4, free=1)
    assert request is not None
    assert request.waiting[0].seq == 4


def test_waiting_deliveries_start_in_sort_order_whatever_order_they_came_in() -> None:
    held = Holding()
    for priority, visible_at, seq in ((0, 5.0, 9), (0, 5.0, 3), (0, 1.0, 7), (2, 9.0, 8)):
        held.hold(delivery(priority, seq=seq, visible_at=visible_at, started=False))
    assert [d.seq for d in held.waiting()] == [8, 7, 3, 9]
    held.drop(delivery(seq=7))
    assert [d.seq for d in held.take_waiting()] == [8, 3, 9]
    assert held.unstarted == 0


def test_a_number_is_never_used_twice() -> None:
    held = Holding()
    first = held.begin(delivery(), started_at=0)
    del held.running[first.number]
    assert held.begin(delivery(), started_at=0).number != first.number


def test_reserved_slots_count_what_runs_by_the_priority_it_was_taken_with() -> None:
    config = Config(concurrency=4, normal_reserved_slots=2, urgent_reserved_slots=1)
    rules = resolve(config, WorkerOptions(), "w")
    budget = rules.budget([9, 0, -3])
    assert (budget.above_normal, budget.below_urgent) == (1, 1)
