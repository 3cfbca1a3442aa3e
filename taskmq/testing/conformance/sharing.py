"""Sharing: queues inside one band by weight (P3), and reserved slots as budgets (P17)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from taskmq.message import Delivery
from taskmq.policy.bands import Budget
from taskmq.testing.conformance.bench import Bench, Contract, names
from taskmq.transports.base import QueueShare

BOTH = (QueueShare("a", 1), QueueShare("b", 3))


class TestWeights(Contract):
    def fill(self, bench: Bench, *queues: str, count: int = 100, priority: int = 0) -> None:
        for queue in queues:
            bench.transport.submit(
                [
                    bench.message(f"{queue}{priority}-{i}", queue=queue, priority=priority)
                    for i in range(count)
                ]
            )

    def queues_of(self, deliveries: list[Delivery]) -> Counter[str]:
        return Counter(d.message.queue for d in deliveries)

    def test_one_slot_at_a_time_shares_by_weight(self, bench: Bench) -> None:
        self.fill(bench, "a", "b")

        taken = [bench.take(queues=BOTH) for _ in range(40)]

        assert self.queues_of(taken) == {"a": 10, "b": 30}

    def test_the_rotation_goes_on_whichever_worker_asks(self, bench: Bench) -> None:
        self.fill(bench, "a", "b")

        taken = [bench.take(queues=BOTH, worker=f"w{i}") for i in range(40)]

        assert self.queues_of(taken) == {"a": 10, "b": 30}

    def test_shares_are_spread_evenly(self, bench: Bench) -> None:
        self.fill(bench, "a", "b")

        taken = [bench.take(queues=BOTH) for _ in range(40)]

        for start in range(0, 40, 4):
            assert self.queues_of(taken[start : start + 4])["a"] == 1

    def test_equal_weights_alternate(self, bench: Bench) -> None:
        self.fill(bench, "a", "b")

        taken = [bench.take(queues=("a", "b")).message.queue for _ in range(10)]

        assert all(x != y for x, y in pairwise(taken))

    def test_one_reserve_of_many_shares_by_weight(self, bench: Bench) -> None:
        self.fill(bench, "a", "b")

        assert self.queues_of(bench.reserve(20, queues=BOTH)) == {"a": 5, "b": 15}

    def test_every_queue_gets_one_when_as_many_are_asked_for(self, bench: Bench) -> None:
        queues = (QueueShare("a", 1), QueueShare("b", 100), QueueShare("c", 1000))
        self.fill(bench, "a", "b", "c", count=10)

        assert set(self.queues_of(bench.reserve(3, queues=queues))) == {"a", "b", "c"}

    def test_a_queue_that_runs_dry_leaves_its_slots_to_the_others(self, bench: Bench) -> None:
        self.fill(bench, "a", count=50)
        self.fill(bench, "b", count=2)

        assert self.queues_of(bench.reserve(20, queues=BOTH)) == {"a": 18, "b": 2}

    def test_a_weight_never_ranks_above_a_priority(self, bench: Bench) -> None:
        self.fill(bench, "b", count=5)
        self.fill(bench, "a", count=5, priority=1)

        assert self.queues_of(bench.reserve(5, queues=BOTH)) == {"a": 5}

    def test_inside_a_queue_the_order_stays_strict(self, bench: Bench) -> None:
        self.fill(bench, "a", "b", count=20)

        taken = [bench.take(queues=BOTH) for _ in range(30)]

        for queue in "ab":
            seqs = [d.seq for d in taken if d.message.queue == queue]
            assert seqs == sorted(seqs)


class TestBudgets(Contract):
    def fill(self, bench: Bench) -> None:
        bench.submit("n1", "n2", "n3", priority=0)
        bench.submit("u1", "u2", "u3", priority=9)
        bench.submit("l1", "l2", "l3", priority=-9)

    def test_normal_reserved_slots_are_not_given_to_messages_above_normal(
        self, bench: Bench
    ) -> None:
        self.fill(bench)

        taken = bench.reserve(3, budget=Budget(above_normal=1))

        assert names(taken) == ["u1", "n1", "n2"]

    def test_urgent_reserved_slots_stay_free(self, bench: Bench) -> None:
        self.fill(bench)

        taken = bench.reserve(9, budget=Budget(below_urgent=2, threshold=5))

        assert names(taken) == ["u1", "u2", "u3", "n1", "n2"]

    def test_a_threshold_decides_who_is_urgent(self, bench: Bench) -> None:
        self.fill(bench)

        taken = bench.reserve(9, budget=Budget(below_urgent=1, threshold=0))

        assert names(taken) == ["u1", "u2", "u3", "n1", "n2", "n3", "l1"]

    def test_both_budgets_hold_together(self, bench: Bench) -> None:
        self.fill(bench)

        taken = bench.reserve(9, budget=Budget(above_normal=1, below_urgent=2, threshold=5))

        assert names(taken) == ["u1", "n1", "n2"]

    def test_nothing_is_taken_when_both_are_used_up(self, bench: Bench) -> None:
        self.fill(bench)

        assert bench.reserve(9, budget=Budget(above_normal=0, below_urgent=0)) == []

    def test_only_what_a_slot_could_take_is_held_unstarted(self, bench: Bench) -> None:
        self.fill(bench)

        held = bench.reserve(0, room=2, budget=Budget(above_normal=0))

        assert names(held) == ["n1", "n2"]

    def test_a_held_delivery_outside_the_budget_does_not_start(self, bench: Bench) -> None:
        bench.submit("urgent", priority=9)
        held = bench.hold()
        bench.submit("normal", priority=0)

        turn = bench.turn((), 1, waiting=(held,), budget=Budget(above_normal=0))

        assert names(turn.deliveries) == ["normal"]
        assert turn.refused == ()
