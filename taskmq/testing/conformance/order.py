"""The claim order: (priority DESC, visible_at ASC, sequence ASC), strict over all queues (P1, P2, P9)."""

from __future__ import annotations

from random import Random

from taskmq.message import Rate
from taskmq.testing.conformance.bench import Bench, Contract, names


class TestOrder(Contract):
    def test_the_higher_priority_comes_first(self, bench: Bench) -> None:
        bench.submit("low", priority=-1)
        bench.submit("high", priority=1)
        bench.submit("normal", priority=0)

        assert bench.drain() == ["high", "normal", "low"]

    def test_all_nineteen_levels_are_distinct(self, bench: Bench) -> None:
        levels = list(range(-9, 10))
        Random(4).shuffle(levels)
        for level in levels:
            bench.submit(f"a{level}", f"b{level}", priority=level)

        expected = [f"{x}{level}" for level in range(9, -10, -1) for x in "ab"]
        assert bench.drain() == expected

    def test_one_priority_is_first_in_first_out(self, bench: Bench) -> None:
        bench.submit("a", "b")
        bench.transport.submit([bench.message("c"), bench.message("d")])
        bench.submit("e")

        assert bench.drain() == ["a", "b", "c", "d", "e"]

    def test_one_batch_is_reserved_in_claim_order(self, bench: Bench) -> None:
        for name, priority in [("d", 0), ("a", 9), ("e", 0), ("b", 5), ("c", 5), ("f", -9)]:
            bench.submit(name, priority=priority)

        assert names(bench.reserve(6)) == ["a", "b", "c", "d", "e", "f"]

    def test_no_more_than_the_free_slots_are_taken(self, bench: Bench) -> None:
        bench.submit("a", "b", "c")

        assert names(bench.reserve(2)) == ["a", "b"]
        assert bench.reserve(0) == []

    def test_a_message_is_reserved_once(self, bench: Bench) -> None:
        bench.submit("a")
        bench.take(worker="w1")

        assert bench.reserve(1, worker="w2") == []

    def test_a_clock_that_steps_back_does_not_reorder(self, bench: Bench) -> None:
        bench.submit("first")
        bench.clock.step(-3600)
        bench.submit("second")
        bench.clock.step(1800)
        bench.submit("third")

        assert bench.drain() == ["first", "second", "third"]

    def test_a_ready_message_stays_claimable_when_the_clock_steps_back(self, bench: Bench) -> None:
        bench.submit("a")
        bench.clock.step(-3600)

        assert bench.peek() == 0
        assert names(bench.reserve(1)) == ["a"]

    def test_priority_is_strict_across_queues(self, bench: Bench) -> None:
        bench.submit("bulk1", "bulk2", queue="bulk", priority=0)
        bench.submit("urgent", queue="small", priority=1)

        assert bench.drain(queues=("bulk", "small")) == ["urgent", "bulk1", "bulk2"]

    def test_only_the_queues_asked_for_are_served(self, bench: Bench) -> None:
        bench.submit("other", queue="other", priority=9)
        bench.submit("mine", queue="mine")

        assert bench.drain(queues=("mine",)) == ["mine"]
        assert bench.drain(queues=("unheard-of",)) == []

    def test_a_due_eta_has_the_place_of_its_due_time(self, bench: Bench) -> None:
        now = bench.clock.now()
        bench.submit("eta", eta=now + 5)
        bench.clock.advance(3)
        bench.submit("before")
        bench.clock.advance(7)
        bench.submit("after")

        assert bench.drain() == ["before", "eta", "after"]

    def test_etas_are_ordered_by_due_time_then_by_submit(self, bench: Bench) -> None:
        now = bench.clock.now()
        bench.submit("c", eta=now + 9)
        bench.submit("a", eta=now + 5)
        bench.submit("b", eta=now + 5)
        bench.clock.advance(60)

        assert bench.drain() == ["a", "b", "c"]

    def test_a_due_eta_gets_no_bonus(self, bench: Bench) -> None:
        bench.submit("late", eta=bench.clock.now() + 1, priority=0)
        bench.clock.advance(3600)
        bench.submit("urgent", priority=1)

        assert bench.drain() == ["urgent", "late"]

    def test_a_past_eta_is_an_ordinary_submit(self, bench: Bench) -> None:
        bench.submit("first")
        bench.submit("past", eta=bench.clock.now() - 3600)

        assert bench.drain() == ["first", "past"]

    def test_an_expired_head_does_not_let_a_later_one_of_another_lane_pass(
        self, bench: Bench
    ) -> None:
        bench.submit("expired", expires_at=bench.clock.now() + 5)
        bench.submit("first")
        bench.submit("limited", rate=Rate("slow", 60.0))
        bench.submit("last")
        bench.clock.advance(5)

        assert bench.drain() == ["first", "limited", "last"]

    def test_an_urgent_due_message_is_not_hidden_by_many_others_that_fell_due(
        self, bench: Bench
    ) -> None:
        due = bench.clock.now() + 10
        bench.transport.submit(
            [bench.message(f"bulk{i}", priority=-9, eta=due - 1) for i in range(3000)]
        )
        bench.submit("urgent", priority=9, eta=due)
        bench.clock.advance(10)

        assert bench.peek() == 9
        assert names(bench.transport.turn((), bench.request(1)).deliveries) == ["urgent"]
