"""Concurrency keys as eligibility: at most `limit` due messages of a key, the others in sort order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from taskmq.message import ConcurrencyKey, Rate
from taskmq.states import State
from taskmq.testing.conformance.bench import Bench, Contract, names
from taskmq.transports.base import Verb

ONE = ConcurrencyKey("account-1")


class TestConcurrencyKey(Contract):
    @pytest.fixture(autouse=True)
    def _needs_limits(self, bench: Bench) -> None:
        bench.needs("shared_limits")

    def states(self, bench: Bench, task_ids: Sequence[str]) -> list[State]:
        return [bench.state(t) for t in task_ids]

    def test_at_most_one_of_a_key_runs(self, bench: Bench) -> None:
        bench.submit("a", "b", concurrency=ONE)

        first = bench.take()
        assert bench.reserve(5) == []
        bench.finish(first)

        assert names(bench.reserve(5)) == ["b"]

    def test_at_most_limit_of_a_key_run(self, bench: Bench) -> None:
        bench.submit("a", "b", "c", "d", concurrency=ConcurrencyKey("two", 2))

        first, _ = bench.reserve(5)
        assert bench.reserve(5) == []
        bench.finish(first)

        assert names(bench.reserve(5)) == ["c"]

    def test_other_keys_and_messages_without_one_are_not_held_up(self, bench: Bench) -> None:
        bench.submit("a", "b", concurrency=ONE, priority=9)
        bench.submit("other", concurrency=ConcurrencyKey("account-2"))
        bench.submit("plain")

        assert names(bench.reserve(5)) == ["a", "other", "plain"]

    def test_a_blocked_message_is_queued(self, bench: Bench) -> None:
        bench.submit("a", "b", concurrency=ONE)

        assert self.states(bench, "ab") == [State.QUEUED, State.QUEUED]

    def test_a_more_urgent_one_takes_the_key_of_one_that_falls_due_with_it(
        self, bench: Bench
    ) -> None:
        # Older, so it goes first; it comes back from a pause while its successor waits for a token.
        rate = Rate("spaced", 1.0)
        bench.submit("older", concurrency=ONE, rate=rate)
        running = bench.take()
        bench.submit("newer", concurrency=ONE, rate=rate)
        bench.settle(running, Verb.RELEASE, delay=0.9)
        assert bench.reserve(1) == []
        bench.clock.advance(2)

        first = bench.reserve(5)
        assert bench.reserve(5) == []
        bench.finish(first[0])
        bench.clock.advance(1)

        assert names(first) == ["older"]
        assert names(bench.reserve(5)) == ["newer"]

    def test_blocked_ones_keep_strict_priority_among_themselves(self, bench: Bench) -> None:
        # R12: the urgent one is the next to run, whatever the backlog of its key.
        for i in range(5):
            bench.submit(f"pull{i}", concurrency=ONE)
        running = bench.take()
        bench.submit("refresh", priority=1, concurrency=ONE)

        bench.finish(running)

        assert bench.drain() == ["refresh", "pull1", "pull2", "pull3", "pull4"]

    def test_a_more_urgent_arrival_swaps_places_with_one_not_yet_reserved(
        self, bench: Bench
    ) -> None:
        bench.submit("low", priority=-1, concurrency=ONE)
        bench.submit("high", priority=1, concurrency=ONE)

        assert bench.peek() == 1
        assert names(bench.reserve(5)) == ["high"]

    def test_one_that_gets_the_key_of_an_expired_one_keeps_its_place(self, bench: Bench) -> None:
        bench.submit("expired", concurrency=ONE, expires_at=bench.clock.now() + 1)
        bench.submit("next", concurrency=ONE)
        bench.submit("later", "last")
        bench.clock.advance(2)

        assert names(bench.reserve(2)) == ["next", "later"]

    def test_a_reserved_one_is_not_swapped_out(self, bench: Bench) -> None:
        bench.submit("low", priority=-1, concurrency=ONE)
        held = bench.hold()
        bench.submit("high", priority=9, concurrency=ONE)

        assert bench.reserve(5) == []
        assert names(bench.transport.start([held]).started) == ["low"]

    def test_one_scheduled_for_later_holds_nothing(self, bench: Bench) -> None:
        # R11: a message that is not due holds neither a key nor a place in the order.
        later = bench.clock.now() + 3600
        bench.submit("later", priority=9, concurrency=ONE, eta=later)
        bench.submit("now", concurrency=ONE)

        assert names(bench.reserve(5)) == ["now"]

    def test_a_retry_with_a_delay_lets_the_next_one_run(self, bench: Bench) -> None:
        bench.submit("a", "b", concurrency=ONE)
        bench.settle(bench.take(), Verb.RETRY, delay=60)

        assert names(bench.reserve(5)) == ["b"]

    def test_a_release_with_a_delay_lets_the_next_one_run(self, bench: Bench) -> None:
        bench.submit("a", "b", concurrency=ONE)
        bench.settle(bench.take(), Verb.RELEASE, delay=60)

        assert names(bench.reserve(5)) == ["b"]

    def test_a_due_retry_waits_for_the_key_like_anybody(self, bench: Bench) -> None:
        bench.submit("a", "b", concurrency=ONE)
        bench.settle(bench.take(), Verb.RETRY, delay=60)
        running = bench.take()
        bench.clock.advance(60)
        assert bench.reserve(5) == []

        bench.finish(running)

        assert names(bench.reserve(5)) == ["a"]

    @pytest.mark.parametrize("way", ["finish", "bury", "revoke", "purge", "expire"])
    def test_every_ending_passes_the_key_on(self, bench: Bench, way: str) -> None:
        bench.submit("a", concurrency=ONE, priority=1, expires_at=bench.clock.now() + 5)
        bench.submit("b", concurrency=ONE, queue="other")
        if way == "finish":
            bench.finish(bench.take())
        elif way == "bury":
            bench.settle(bench.take(), Verb.BURY, reason="bad")
        elif way == "revoke":
            bench.transport.operators.revoke(["a"])
        elif way == "purge":
            bench.transport.operators.purge("q")
        else:
            bench.clock.advance(5)
            bench.sweep()

        assert names(bench.reserve(5, queues=("other",))) == ["b"]

    def test_a_lost_worker_does_not_keep_the_key_for_ever(self, bench: Bench) -> None:
        bench.needs("leases")
        bench.submit("a", "b", concurrency=ONE)
        bench.take()
        bench.lose_leases()

        assert bench.drain() == ["a", "b"]

    @pytest.mark.parametrize("way", ["release", "lose"])
    def test_one_handed_back_gives_way_to_a_more_urgent_one_it_blocked(
        self, bench: Bench, way: str
    ) -> None:
        bench.submit("low", priority=-1, concurrency=ONE)
        running = bench.take()
        bench.submit("high", priority=9, concurrency=ONE)
        bench.submit("lower", priority=-2, concurrency=ONE)

        if way == "release":
            bench.settle(running, Verb.RELEASE)
        else:
            bench.needs("leases")
            bench.lose_leases()

        assert bench.drain() == ["high", "low", "lower"]

    def test_a_blocked_one_can_be_revoked(self, bench: Bench) -> None:
        bench.submit("a", "b", "c", concurrency=ONE)
        running = bench.take()

        bench.transport.operators.revoke(["b"])
        bench.finish(running)

        assert names(bench.reserve(5)) == ["c"]

    def test_a_blocked_one_can_expire(self, bench: Bench) -> None:
        bench.submit("a", concurrency=ONE)
        bench.submit("b", concurrency=ONE, expires_at=bench.clock.now() + 5)
        bench.submit("c", concurrency=ONE)
        running = bench.take()
        bench.clock.advance(5)
        bench.sweep()

        assert bench.state("b") is State.EXPIRED
        bench.finish(running)
        assert names(bench.reserve(5)) == ["c"]
