"""Aging (P4): off unless asked for; waiting raises the effective priority, at reserve and in peek."""

from __future__ import annotations

from taskmq.policy.aging import Aging
from taskmq.testing.conformance.bench import Bench, Contract, names

SLOWLY = Aging(10.0, cap=3)


class TestAging(Contract):
    def test_without_aging_waiting_changes_nothing(self, bench: Bench) -> None:
        bench.submit("old", priority=0)
        bench.clock.advance(100_000)
        bench.submit("new", priority=1)

        assert bench.drain() == ["new", "old"]

    def test_a_message_that_waited_overtakes_a_more_urgent_new_one(self, bench: Bench) -> None:
        bench.submit("old", priority=0)
        bench.clock.advance(20)
        bench.submit("new", priority=1)

        taken = bench.reserve(2, aging=SLOWLY)

        assert [(d.message.task_id, d.effective) for d in taken] == [("old", 2), ("new", 1)]

    def test_the_stored_priority_stays(self, bench: Bench) -> None:
        bench.submit("old", priority=0)
        bench.clock.advance(20)

        assert bench.take(aging=SLOWLY).message.priority == 0

    def test_the_cap_bounds_it(self, bench: Bench) -> None:
        bench.submit("old", priority=0)
        bench.clock.advance(10_000)
        bench.submit("new", priority=4)

        assert names(bench.reserve(2, aging=SLOWLY)) == ["new", "old"]

    def test_nobody_ages_above_nine(self, bench: Bench) -> None:
        bench.submit("old", priority=8)
        bench.clock.advance(10_000)

        assert bench.take(aging=SLOWLY).effective == 9

    def test_of_one_effective_priority_the_one_that_waited_longer_is_first(
        self, bench: Bench
    ) -> None:
        bench.submit("a", priority=0)
        bench.clock.advance(10)
        bench.submit("b", priority=1)
        bench.clock.advance(5)

        assert names(bench.reserve(2, aging=SLOWLY)) == ["a", "b"]

    def test_low_priorities_are_served_under_lasting_urgent_load(self, bench: Bench) -> None:
        bench.submit("low", priority=-2)
        served = []
        for second in range(60):
            bench.submit(f"urgent{second}", priority=0)
            (delivery,) = bench.reserve(1, aging=Aging(10.0, cap=9))
            served.append(delivery.message.task_id)
            bench.finish(delivery)
            bench.clock.advance(1)

        assert "low" in served
        assert served.index("low") <= 30
