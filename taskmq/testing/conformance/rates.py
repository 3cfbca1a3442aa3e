"""Rate limits as eligibility: tokens first come, first served, however urgent a late comer is (P8)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from taskmq.message import Rate
from taskmq.states import State
from taskmq.testing.conformance.bench import Bench, Contract, names
from taskmq.transports.base import Verb

SLOW = Rate("slow", 10.0)


class TestRateLimit(Contract):
    @pytest.fixture(autouse=True)
    def _needs_limits(self, bench: Bench) -> None:
        bench.needs("shared_limits")

    def starts(self, bench: Bench, seconds: int, **fields: Any) -> list[tuple[int, str]]:
        """Take and finish what can be had, second by second."""
        began = bench.clock.now()
        seen = []
        for _ in range(seconds):
            for delivery in bench.reserve(5, **fields):
                seen.append((round(bench.clock.now() - began), delivery.message.task_id))
                bench.finish(delivery)
            bench.clock.advance(1)
        return seen

    def test_one_start_per_interval(self, bench: Bench) -> None:
        bench.submit("a", "b", "c", rate=SLOW)

        assert self.starts(bench, 25) == [(0, "a"), (10, "b"), (20, "c")]

    def test_others_are_not_held_up(self, bench: Bench) -> None:
        bench.submit("a", "b", rate=SLOW, priority=9)
        bench.submit("x", "y", priority=0)

        assert self.starts(bench, 1) == [(0, "a"), (0, "x"), (0, "y")]

    def test_a_more_urgent_late_comer_gets_a_later_token(self, bench: Bench) -> None:
        bench.submit("a", "b", "c", rate=SLOW, priority=0)
        assert self.starts(bench, 1) == [(0, "a")]

        bench.submit("urgent", rate=SLOW, priority=9)

        assert self.starts(bench, 40) == [(9, "b"), (19, "c"), (29, "urgent")]

    def test_before_anybody_asked_priority_decides(self, bench: Bench) -> None:
        bench.submit("a", rate=SLOW, priority=0)
        bench.submit("urgent", rate=SLOW, priority=9)

        assert self.starts(bench, 15) == [(0, "urgent"), (10, "a")]

    def test_a_message_waiting_for_its_token_is_queued(self, bench: Bench) -> None:
        bench.submit("a", "b", rate=SLOW)
        bench.reserve(2)

        assert bench.state("b") is State.QUEUED

    def test_next_due_is_the_time_of_the_next_token(self, bench: Bench) -> None:
        bench.submit("a", "b", rate=SLOW)
        bench.reserve(2)

        due = bench.transport.next_due(bench.request().queues)

        assert due == pytest.approx(bench.clock.now() + 10)

    def test_the_limit_holds_over_queues_and_workers(self, bench: Bench) -> None:
        bench.submit("a", rate=SLOW, queue="a")
        bench.submit("b", rate=SLOW, queue="b")

        assert names(bench.reserve(5, queues=("a",), worker="w1")) == ["a"]
        assert bench.reserve(5, queues=("b",), worker="w2") == []
        bench.clock.advance(10)
        assert names(bench.reserve(5, queues=("b",), worker="w2")) == ["b"]

    def test_limits_of_different_keys_are_apart(self, bench: Bench) -> None:
        bench.submit("a", rate=Rate("x", 10))
        bench.submit("b", rate=Rate("y", 10))

        assert names(bench.reserve(5)) == ["a", "b"]

    def test_an_unused_token_is_not_saved_up(self, bench: Bench) -> None:
        bench.submit("a", rate=SLOW)
        self.starts(bench, 1)
        bench.clock.advance(1000)
        bench.submit("b", "c", rate=SLOW)

        assert self.starts(bench, 15) == [(0, "b"), (10, "c")]

    def test_a_held_delivery_takes_its_token_when_it_starts(self, bench: Bench) -> None:
        bench.submit("a", "b", rate=SLOW)
        first, second = bench.reserve(0, room=2)

        result = bench.transport.start([first, second])

        assert names(result.started) == ["a"]
        assert names(result.refused) == ["b"]
        assert bench.state("b") is State.QUEUED
        assert bench.reserve(1) == []
        bench.clock.advance(10)
        assert [(d.message.task_id, d.deliveries) for d in bench.reserve(1)] == [("b", 1)]

    def test_a_held_delivery_without_a_token_is_refused_and_its_slot_goes_on(
        self, bench: Bench
    ) -> None:
        bench.submit("a", "b", rate=SLOW, priority=5)
        first, second = bench.reserve(0, room=2)
        bench.submit("other", priority=0)

        turn = bench.turn((), 2, waiting=[first, second])

        assert names(turn.deliveries) == ["a", "other"]
        assert names(turn.refused) == ["b"]

    def test_a_backlog_is_not_scanned_away_and_keeps_its_order(self, bench: Bench) -> None:
        fast = Rate("fast", 1.0)
        bench.transport.submit([bench.message(f"{i:03}", rate=fast) for i in range(200)])

        seen = self.starts(bench, 210)

        assert [name for _, name in seen] == [f"{i:03}" for i in range(200)]
        assert [at for at, _ in seen] == list(range(200))

    def test_while_a_backlog_waits_for_tokens_others_run(self, bench: Bench) -> None:
        bench.transport.submit(
            [bench.message(f"{i:03}", rate=SLOW, priority=9) for i in range(200)]
        )
        bench.submit("other")

        assert names(bench.reserve(2)) == ["000", "other"]

    def test_a_retry_needs_a_token_of_its_own(self, bench: Bench) -> None:
        bench.submit("a", rate=SLOW)
        bench.settle(bench.take(), Verb.RETRY)

        assert bench.reserve(1) == []
        bench.clock.advance(10)
        assert names(bench.reserve(1)) == ["a"]

    def test_bookings_that_fell_due_while_nobody_worked_are_spaced_too(self, bench: Bench) -> None:
        bench.submit(*"abcde", rate=SLOW)
        assert self.starts(bench, 1) == [(0, "a")]
        bench.clock.advance(1000)

        assert self.starts(bench, 45) == [(0, "b"), (10, "c"), (20, "d"), (30, "e")]

    def test_bookings_that_fell_due_are_spaced_however_irregular_the_workers_come(
        self, bench: Bench
    ) -> None:
        count = 30
        bench.submit(*(f"{i:02}" for i in range(count)), rate=SLOW)
        began = []
        for wait in (3, 95, 0, 17, 4, 41, 0, 0, 6) * count:
            bench.clock.advance(wait)
            taken = bench.reserve(3, room=2)
            running = [d for d in taken if d.started]
            held = [d for d in taken if not d.started]
            began += [bench.clock.now()] * (len(running) + len(bench.transport.start(held).started))

        assert len(began) == count
        assert all(b - a >= SLOW.interval for a, b in pairwise(began))

    def test_held_bookings_start_one_per_interval(self, bench: Bench) -> None:
        bench.submit("a", "b", "c", rate=SLOW)
        self.starts(bench, 1)
        bench.clock.advance(1000)
        held = bench.reserve(0, room=5)

        result = bench.transport.start(held)

        assert names(held) == ["b", "c"]
        assert names(result.started) == ["b"]
        assert names(result.refused) == ["c"]
        assert bench.state("c") is State.QUEUED
        assert bench.reserve(5) == []
        bench.clock.advance(10)
        assert [(d.message.task_id, d.deliveries) for d in bench.reserve(5)] == [("c", 1)]

    def test_a_due_booking_is_not_peeked_before_the_pace_allows(self, bench: Bench) -> None:
        bench.submit("a", "b", "c", rate=SLOW, priority=9)
        self.starts(bench, 1)
        bench.clock.advance(1000)
        assert bench.peek() == 9

        bench.reserve(1)

        assert bench.peek() is None
        assert bench.transport.next_due(bench.request().queues) == pytest.approx(
            bench.clock.now() + 10
        )
        (found,) = bench.transport.operators.find("c")
        assert found.rate_until == pytest.approx(bench.clock.now() + 10)
        bench.clock.advance(10)
        assert bench.peek() == 9

    def test_the_preview_has_one_of_a_limit(self, bench: Bench) -> None:
        bench.submit("a", "b", "c", rate=SLOW)
        self.starts(bench, 1)
        bench.clock.advance(1000)
        bench.submit("d", rate=SLOW)

        peeked = bench.transport.operators.peek(bench.request().queues, 10)

        assert [p.message.task_id for p in peeked] == ["b"]

    def test_a_yield_takes_no_token_and_no_pace(self, bench: Bench) -> None:
        bench.submit("a", "b", "c", rate=SLOW)
        self.starts(bench, 1)
        bench.clock.advance(1000)
        (held,) = bench.reserve(0, room=1)

        bench.transport.yield_reservation(held, delay=0)

        assert names(bench.reserve(5)) == ["b"]

    def test_a_changed_limit_holds_for_the_next_message(self, bench: Bench) -> None:
        bench.submit(*"abc", rate=Rate("changed", 3600.0))
        self.starts(bench, 1)

        bench.submit("new", rate=Rate("changed", 10.0))

        assert self.starts(bench, 25)[0] == (10, "new")

    def test_a_changed_limit_opens_a_lane_that_was_closed(self, bench: Bench) -> None:
        old = Rate("changed", 3600.0)
        bench.transport.submit([bench.message(f"{i:03}", rate=old) for i in range(100)])
        self.starts(bench, 1)

        bench.submit("new", rate=Rate("changed", 10.0), priority=9)

        assert (10, "new") in self.starts(bench, 25)

    def test_a_purge_forgets_the_bookings_of_its_limits(self, bench: Bench) -> None:
        bench.transport.submit([bench.message(f"{i:03}", rate=SLOW) for i in range(100)])
        self.starts(bench, 1)
        bench.transport.operators.purge("q")

        bench.submit("new", rate=SLOW)

        assert self.starts(bench, 25) == [(9, "new")]

    def test_a_purge_leaves_a_limit_that_other_queues_share(self, bench: Bench) -> None:
        bench.submit("other", rate=SLOW, queue="other")
        bench.submit(*"abc", rate=SLOW)
        self.starts(bench, 1)
        bench.transport.operators.purge("q")
        bench.submit("new", rate=SLOW)

        assert self.starts(bench, 35) == [(29, "new")]

    def test_a_clock_that_jumps_back_stops_no_limited_task(self, bench: Bench) -> None:
        bench.submit("a", rate=SLOW)
        self.starts(bench, 1)
        bench.clock.step(-3600)
        bench.submit("b", "c", rate=SLOW)

        assert self.starts(bench, 15) == [(0, "b"), (10, "c")]
