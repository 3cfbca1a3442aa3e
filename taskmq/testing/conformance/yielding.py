"""Yielding: an unstarted delivery goes back to its old place and nothing is counted (P12-P14, P18)."""

from __future__ import annotations

from taskmq.message import ConcurrencyKey, Delivery, Rate
from taskmq.states import State
from taskmq.testing.conformance.bench import Bench, Contract, names


class TestYield(Contract):
    def give_back(self, bench: Bench, delivery: Delivery, delay: float = 0.1) -> bool:
        return bench.transport.yield_reservation(delivery, delay=delay)

    def test_a_yielded_message_is_queued_again(self, bench: Bench) -> None:
        bench.submit("a")

        assert self.give_back(bench, bench.hold())

        assert bench.state("a") is State.QUEUED

    def test_it_is_not_claimable_before_its_delay_has_passed(self, bench: Bench) -> None:
        bench.submit("a")
        self.give_back(bench, bench.hold(), delay=0.1)

        bench.clock.advance(0.05)
        assert bench.reserve(1) == []
        assert bench.peek() is None

        bench.clock.advance(0.06)
        assert bench.peek() == 0
        assert names(bench.reserve(1)) == ["a"]

    def test_it_returns_to_the_place_it_had(self, bench: Bench) -> None:
        bench.needs("keeps_place")
        bench.submit("a", "b")
        first = bench.hold()
        self.give_back(bench, first)
        bench.submit("c")
        bench.clock.advance(1)

        assert bench.drain() == ["a", "b", "c"]

    def test_later_ones_may_pass_while_the_delay_runs(self, bench: Bench) -> None:
        bench.submit("a", "b")
        self.give_back(bench, bench.hold())

        assert names(bench.reserve(1)) == ["b"]

    def test_yields_are_counted_and_deliveries_are_not(self, bench: Bench) -> None:
        bench.submit("a", max_deliveries=1)
        for _ in range(10):
            self.give_back(bench, bench.hold())
            bench.clock.advance(1)

        delivery = bench.take()

        assert (delivery.yields, delivery.deliveries) == (10, 1)
        assert bench.dead() == []

    def test_after_max_yields_it_is_no_longer_yieldable(self, bench: Bench) -> None:
        bench.make(max_yields=3)
        bench.submit("a")
        flags = []
        for _ in range(3):
            held = bench.hold()
            flags.append(held.yieldable)
            self.give_back(bench, held)
            bench.clock.advance(1)

        assert flags == [True, True, True]
        assert not bench.hold().yieldable

    def test_one_that_is_no_longer_yieldable_makes_nobody_yield(self, bench: Bench) -> None:
        bench.make(max_yields=1)
        bench.submit("tired", priority=9)
        self.give_back(bench, bench.hold())
        bench.clock.advance(1)
        bench.submit("fresh", priority=2)

        assert bench.peek() == 2

    def test_peek_sees_a_yieldable_one_behind_one_that_is_not(self, bench: Bench) -> None:
        bench.make(max_yields=1)
        bench.submit("tired", "fresh", priority=9)
        self.give_back(bench, bench.hold())
        bench.clock.advance(1)

        assert bench.peek() == 9

    def test_a_free_slot_still_takes_it_in_order(self, bench: Bench) -> None:
        bench.make(max_yields=1)
        bench.submit("tired", priority=9)
        self.give_back(bench, bench.hold())
        bench.clock.advance(1)
        bench.submit("fresh", priority=2)

        assert bench.drain() == ["tired", "fresh"]

    def test_a_started_delivery_can_not_be_yielded(self, bench: Bench) -> None:
        bench.submit("a")
        running = bench.take()

        assert not self.give_back(bench, running)

        assert bench.state("a") is State.RUNNING
        assert bench.finish(running)

    def test_a_delivery_can_be_yielded_once(self, bench: Bench) -> None:
        bench.submit("a")
        held = bench.hold()

        assert self.give_back(bench, held)
        assert not self.give_back(bench, held)

        bench.clock.advance(1)
        assert bench.take().yields == 1

    def test_a_yielded_delivery_can_not_be_settled(self, bench: Bench) -> None:
        bench.submit("a")
        held = bench.hold()
        self.give_back(bench, held)

        assert not bench.finish(held)
        assert bench.state("a") is State.QUEUED

    def test_no_rate_token_is_taken(self, bench: Bench) -> None:
        bench.needs("shared_limits")
        bench.submit("a", rate=Rate("slow", 60.0))
        self.give_back(bench, bench.hold())
        bench.clock.advance(1)

        assert names(bench.reserve(1)) == ["a"]

    def test_the_concurrency_key_is_not_given_up(self, bench: Bench) -> None:
        bench.needs("shared_limits")
        bench.submit("a", "b", concurrency=ConcurrencyKey("one"))
        held = bench.hold()

        self.give_back(bench, held, delay=5)

        assert bench.reserve(1) == []
        bench.clock.advance(5)
        assert names(bench.reserve(2)) == ["a"]

    def test_a_yield_without_a_delay_is_claimable_at_once(self, bench: Bench) -> None:
        bench.submit("a")
        self.give_back(bench, bench.hold(), delay=0.0)

        assert names(bench.reserve(1)) == ["a"]
