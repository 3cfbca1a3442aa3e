"""Peek: exactly what a reserve would find now, or a worker would yield for nothing (seed §7)."""

from __future__ import annotations

from taskmq.message import ConcurrencyKey, Rate
from taskmq.policy.aging import Aging
from taskmq.policy.bands import Window
from taskmq.testing.conformance.bench import Bench, Contract


class TestPeek(Contract):
    def test_there_is_nothing_to_see_in_an_empty_store(self, bench: Bench) -> None:
        assert bench.peek() is None

    def test_the_highest_priority_over_the_queues_asked_for(self, bench: Bench) -> None:
        bench.submit("a", priority=2, queue="a")
        bench.submit("b", priority=7, queue="b")
        bench.submit("c", priority=9, queue="c")

        assert bench.peek(["a", "b"]) == 7
        assert bench.peek(["a"]) == 2
        assert bench.peek([]) is None

    def test_a_negative_priority_is_seen(self, bench: Bench) -> None:
        bench.submit("a", priority=-9)

        assert bench.peek() == -9

    def test_peek_changes_nothing(self, bench: Bench) -> None:
        bench.submit("a")

        assert [bench.peek() for _ in range(3)] == [0, 0, 0]
        assert bench.take().deliveries == 1

    def test_held_and_running_messages_are_not_seen(self, bench: Bench) -> None:
        bench.submit("a", "b")
        bench.reserve(1, room=1)

        assert bench.peek() is None

    def test_a_scheduled_message_is_seen_once_it_is_due(self, bench: Bench) -> None:
        bench.needs("exact_peek")
        bench.submit("later", priority=5, eta=bench.clock.now() + 10)
        assert bench.peek() is None

        bench.clock.advance(10)

        assert bench.peek() == 5

    def test_a_paused_queue_is_not_seen(self, bench: Bench) -> None:
        bench.submit("a", priority=9)
        bench.submit("b", priority=1, queue="other")
        bench.transport.operators.pause("q")

        assert bench.peek(["q", "other"]) == 1

    def test_a_due_message_of_a_paused_queue_is_not_seen(self, bench: Bench) -> None:
        bench.submit("a", eta=bench.clock.now() + 1)
        bench.transport.operators.pause("q")
        bench.clock.advance(1)

        assert bench.peek() is None

    def test_an_expired_message_is_not_seen(self, bench: Bench) -> None:
        bench.needs("exact_peek")
        bench.submit("old", priority=9, expires_at=bench.clock.now() + 5)
        bench.submit("alive", priority=1)
        bench.clock.advance(5)

        assert bench.peek() == 1

    def test_a_message_that_expires_before_it_is_due_is_never_seen(self, bench: Bench) -> None:
        bench.needs("exact_peek")
        now = bench.clock.now()
        bench.submit("never", eta=now + 10, expires_at=now + 5)
        bench.clock.advance(20)

        assert bench.peek() is None

    def test_only_the_window_is_seen(self, bench: Bench) -> None:
        bench.submit("urgent", priority=9)
        bench.submit("normal", priority=0)
        bench.submit("low", priority=-5)

        assert bench.peek(window=Window(high=0)) == 0
        assert bench.peek(window=Window(low=5)) == 9
        assert bench.peek(window=Window(low=1, high=8)) is None

    def test_the_window_holds_for_due_messages_too(self, bench: Bench) -> None:
        bench.submit("urgent", priority=9, eta=bench.clock.now() + 1)
        bench.submit("normal", priority=0, eta=bench.clock.now() + 1)
        bench.clock.advance(2)

        assert bench.peek(window=Window(high=0)) == 0

    def test_a_rate_limited_task_without_a_token_is_not_seen(self, bench: Bench) -> None:
        bench.needs("exact_peek", "shared_limits")
        bench.submit("a", "b", priority=9, rate=Rate("slow", 60.0))
        bench.submit("c", priority=1)
        assert bench.peek() == 9

        bench.take()

        assert bench.peek() == 1

    def test_a_message_blocked_by_its_key_is_not_seen(self, bench: Bench) -> None:
        bench.needs("exact_peek", "shared_limits")
        bench.submit("a", concurrency=ConcurrencyKey("one"))
        bench.take()
        bench.submit("b", priority=9, concurrency=ConcurrencyKey("one"))

        assert bench.peek() is None

    def test_a_due_message_that_its_key_will_block_is_not_seen(self, bench: Bench) -> None:
        bench.needs("exact_peek", "shared_limits")
        bench.submit("a", concurrency=ConcurrencyKey("one"))
        bench.take()
        due = bench.clock.now() + 5
        bench.submit("b", priority=9, concurrency=ConcurrencyKey("one"), eta=due)
        bench.submit("c", "d", priority=4, concurrency=ConcurrencyKey("two"), eta=due)
        bench.clock.advance(5)

        assert bench.peek() == 4
        foreseen = bench.transport.operators.peek(bench.request().queues, 5)
        assert [p.message.task_id for p in foreseen] == ["c"]

    def test_one_that_is_about_to_lose_its_key_to_a_due_message_is_not_seen(
        self, bench: Bench
    ) -> None:
        bench.needs("exact_peek", "shared_limits")
        bench.submit("a", concurrency=ConcurrencyKey("one"))
        due = bench.clock.now() + 5
        bench.submit("b", priority=9, concurrency=ConcurrencyKey("one"), eta=due)
        bench.clock.advance(5)

        assert bench.peek() == 9
        assert bench.peek(window=Window(high=0)) is None

    def test_with_aging_the_effective_priority_is_seen(self, bench: Bench) -> None:
        bench.submit("old", priority=0)
        bench.clock.advance(30)
        bench.submit("new", priority=2)

        assert bench.peek(aging=Aging(10.0)) == 3
        assert bench.peek() == 2

    def test_what_peek_sees_is_what_a_reserve_takes(self, bench: Bench) -> None:
        bench.needs("exact_peek")
        now = bench.clock.now()
        bench.submit("expired", priority=9, expires_at=now + 1)
        bench.submit("paused", priority=9, queue="paused")
        bench.submit("due", priority=8, eta=now + 2)
        bench.submit("ready", priority=3)
        bench.transport.operators.pause("paused")
        bench.clock.advance(2)

        seen = []
        while (level := bench.peek(["q", "paused"])) is not None:
            seen.append(level)
            assert bench.take(queues=("q", "paused")).effective == level

        assert seen == [8, 3]
