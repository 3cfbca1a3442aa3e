"""Rate limits as eligibility: tokens first come, first served, however urgent a late comer is (P8)."""

from __future__ import annotations

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
