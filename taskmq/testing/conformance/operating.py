"""What operators ask and do: depth, peek, find, purge, pause."""

from __future__ import annotations

import pytest

from taskmq.message import ConcurrencyKey, Rate
from taskmq.states import State
from taskmq.testing.conformance.bench import LEASE, Bench, Contract, names
from taskmq.transports.base import QueueShare
from taskmq.transports.operators import Found


class TestDepth(Contract):
    def test_counts_by_queue_and_band_the_highest_first(self, bench: Bench) -> None:
        bench.submit("a", "b", priority=0)
        bench.submit("c", priority=5)
        bench.submit("d", priority=9, queue="email")

        rows = [(d.queue, d.priority, d.ready) for d in bench.transport.operators.depth()]

        assert rows == [("email", 9, 1), ("q", 5, 1), ("q", 0, 2)]

    def test_counts_by_place(self, bench: Bench) -> None:
        bench.submit("a", "b", "c")
        bench.submit("later", eta=bench.clock.now() + 60)
        bench.reserve(1, room=1)

        (row,) = bench.transport.operators.depth()

        assert (row.ready, row.scheduled, row.reserved, row.running) == (1, 1, 1, 1)

    def test_counts_blocked_ones(self, bench: Bench) -> None:
        bench.needs("shared_limits")
        bench.submit("a", "b", "c", concurrency=ConcurrencyKey("one"))

        (row,) = bench.transport.operators.depth()

        assert (row.ready, row.blocked) == (1, 2)

    def test_the_age_of_the_oldest_claimable_one(self, bench: Bench) -> None:
        since = bench.clock.now()
        bench.submit("a")
        bench.clock.advance(50)
        bench.submit("b")

        (row,) = bench.transport.operators.depth()

        assert row.oldest_at == pytest.approx(since)

    def test_of_some_queues_only(self, bench: Bench) -> None:
        bench.submit("a", queue="x")
        bench.submit("b", queue="y")

        assert [d.queue for d in bench.transport.operators.depth(["y"])] == ["y"]

    def test_queues_are_known_by_name_and_pause(self, bench: Bench) -> None:
        bench.submit("a", queue="y")
        bench.submit("b", queue="x")
        bench.transport.operators.pause("y")

        assert [tuple(q) for q in bench.transport.operators.queues()] == [
            ("x", False),
            ("y", True),
        ]


class TestPreview(Contract):
    def preview(self, bench: Bench, *queues: QueueShare, limit: int = 100) -> list[str]:
        shares = queues or (QueueShare("q"),)
        found = bench.transport.operators.peek(shares, limit)
        return [p.message.task_id for p in found]

    def test_it_is_the_order_in_which_one_slot_would_take_them(self, bench: Bench) -> None:
        bench.needs("exact_peek")
        now = bench.clock.now()
        bench.submit("low", priority=-9)
        bench.submit("a", "b", queue="heavy")
        bench.submit("c", "d", "e", "f", "g", queue="light")
        bench.submit("due", eta=now + 1, priority=3)
        bench.submit("not-due", eta=now + 100, priority=9)
        bench.submit("expired", expires_at=now + 1, priority=9)
        bench.clock.advance(2)
        queues = (QueueShare("q"), QueueShare("heavy", 3), QueueShare("light", 1))

        foreseen = self.preview(bench, *queues)

        assert foreseen == bench.drain(queues=queues)
        assert len(foreseen) == 9

    def test_it_changes_nothing(self, bench: Bench) -> None:
        bench.submit("a", queue="x")
        bench.submit("b", queue="y")
        queues = (QueueShare("x"), QueueShare("y"))

        assert self.preview(bench, *queues) == self.preview(bench, *queues)
        assert bench.take(queues=("x", "y")).deliveries == 1

    def test_it_stops_at_its_limit(self, bench: Bench) -> None:
        bench.submit("a", "b", "c")

        assert self.preview(bench, limit=2) == ["a", "b"]

    def test_what_can_not_be_taken_is_not_in_it(self, bench: Bench) -> None:
        bench.needs("shared_limits")
        bench.submit("a", "b", rate=Rate("slow", 60))
        bench.submit("c", "d", concurrency=ConcurrencyKey("one"))
        bench.submit("paused", queue="paused")
        bench.transport.operators.pause("paused")

        assert self.preview(bench, QueueShare("q"), QueueShare("paused")) == ["a", "c"]

    def test_it_shows_place_and_counters(self, bench: Bench) -> None:
        bench.submit("a", priority=2)
        bench.transport.yield_reservation(bench.hold(), delay=0)

        (shown,) = bench.transport.operators.peek([QueueShare("q")], 1)

        assert (shown.effective, shown.deliveries, shown.yields) == (2, 0, 1)
        assert shown.yieldable
        assert shown.visible_at == pytest.approx(bench.clock.now())


class TestFind(Contract):
    def find(self, bench: Bench, task_id: str) -> Found:
        (found,) = bench.transport.operators.find(task_id)
        return found

    def test_nobody_is_found_under_an_unknown_id(self, bench: Bench) -> None:
        assert bench.transport.operators.find("nobody") == []

    def test_how_many_are_ahead(self, bench: Bench) -> None:
        bench.submit("before", "me", "after")
        bench.submit("urgent", priority=5)
        bench.submit("elsewhere-urgent", priority=5, queue="other")
        bench.submit("elsewhere", queue="other")

        found = self.find(bench, "me")

        assert (found.state, found.ahead, found.ahead_capped) == (State.QUEUED, 3, False)

    def test_when_a_scheduled_one_is_due(self, bench: Bench) -> None:
        eta = bench.clock.now() + 60
        bench.submit("a", eta=eta)

        found = self.find(bench, "a")

        assert (found.state, found.yielded) == (State.SCHEDULED, False)
        assert found.due_at == pytest.approx(eta)

    def test_who_holds_it(self, bench: Bench) -> None:
        bench.submit("a")
        bench.take(worker="w7")

        found = self.find(bench, "a")

        assert (found.state, found.worker, found.deliveries) == (State.RUNNING, "w7", 1)
        assert found.lease_until == pytest.approx(bench.clock.now() + LEASE)

    def test_that_it_was_yielded(self, bench: Bench) -> None:
        bench.submit("a")
        bench.transport.yield_reservation(bench.hold(), delay=5)

        found = self.find(bench, "a")

        assert (found.state, found.yielded, found.yields) == (State.QUEUED, True, 1)
        assert found.due_at == pytest.approx(bench.clock.now() + 5)

    def test_that_its_queue_is_paused(self, bench: Bench) -> None:
        bench.submit("a")
        bench.transport.operators.pause("q")

        assert self.find(bench, "a").paused

    def test_who_holds_its_key(self, bench: Bench) -> None:
        bench.needs("shared_limits")
        bench.submit("a", "b", concurrency=ConcurrencyKey("one"))

        assert self.find(bench, "b").blocked_by == ("a",)
        assert self.find(bench, "a").blocked_by == ()

    def test_when_its_token_is_due(self, bench: Bench) -> None:
        bench.needs("shared_limits")
        bench.submit("a", "b", rate=Rate("slow", 60.0))
        bench.reserve(2)

        assert self.find(bench, "b").rate_until == pytest.approx(bench.clock.now() + 60)

    def test_all_messages_of_a_task_the_newest_first(self, bench: Bench) -> None:
        bench.submit("m1", "m2", task_id="same")

        found = bench.transport.operators.find("same")

        assert [f.message.message_id for f in found] == ["m2", "m1"]


class TestPurge(Contract):
    def test_everything_that_nobody_holds_ends_as_revoked(self, bench: Bench) -> None:
        bench.submit("running", "held", "a", "b")
        running, _ = bench.reserve(1, room=1)
        bench.submit("later", eta=bench.clock.now() + 60)
        bench.submit("other", queue="other")

        assert bench.transport.operators.purge("q") == 3

        assert bench.state("a") is State.REVOKED
        assert bench.state("later") is State.REVOKED
        record = bench.transport.results.get("a")
        assert record is not None
        assert record.body is not None
        assert b"its queue was purged" in record.body
        assert bench.state("held") is State.RESERVED
        assert bench.finish(running)
        assert bench.state("other") is State.QUEUED

    def test_blocked_ones_end_too(self, bench: Bench) -> None:
        bench.needs("shared_limits")
        bench.submit("a", "b", "c", concurrency=ConcurrencyKey("one"))

        assert bench.transport.operators.purge("q") == 3
        assert bench.transport.operators.depth() == []

    def test_an_empty_queue_has_nothing_to_purge(self, bench: Bench) -> None:
        assert bench.transport.operators.purge("unheard-of") == 0

    def test_more_than_one_transaction_can_take(self, bench: Bench) -> None:
        bench.transport.submit([bench.message(f"m{i}") for i in range(6000)])

        assert bench.transport.operators.purge("q") == 6000
        assert bench.reserve(1) == []


class TestPause(Contract):
    def test_nothing_is_reserved_from_a_paused_queue(self, bench: Bench) -> None:
        bench.submit("a", priority=9)
        bench.submit("b", queue="other")
        bench.transport.operators.pause("q")

        assert bench.drain(queues=("q", "other")) == ["b"]
        assert bench.state("a") is State.QUEUED

    def test_resume_serves_it_again(self, bench: Bench) -> None:
        bench.submit("a")
        bench.transport.operators.pause("q")
        bench.transport.operators.resume("q")

        assert bench.drain() == ["a"]

    def test_a_running_task_goes_on(self, bench: Bench) -> None:
        bench.submit("running")
        running = bench.take()
        bench.transport.operators.pause("q")

        assert bench.transport.extend([running], 10) == ()
        assert bench.finish(running)

    def test_a_held_delivery_does_not_start(self, bench: Bench) -> None:
        bench.submit("held", "behind")
        held = bench.hold()
        bench.transport.operators.pause("q")

        result = bench.transport.start([held])

        assert names(result.refused) == ["held"]
        assert result.started == ()
        assert bench.state("held") is State.QUEUED
        bench.transport.operators.resume("q")
        first = bench.take()
        assert (first.message.task_id, first.deliveries, first.yields) == ("held", 1, 0)

    def test_a_slot_passes_over_the_held_deliveries_of_a_paused_queue(self, bench: Bench) -> None:
        bench.submit("held", priority=9)
        held = bench.hold()
        bench.submit("other", queue="other")
        bench.transport.operators.pause("q")

        turn = bench.turn((), 1, waiting=[held], queues=("q", "other"))

        assert names(turn.refused) == ["held"]
        assert names(turn.deliveries) == ["other"]

    def test_a_delivery_that_is_not_started_gives_up_its_concurrency_key(
        self, bench: Bench
    ) -> None:
        bench.needs("shared_limits")
        key = ConcurrencyKey("shared")
        bench.submit("held", concurrency=key)
        held = bench.hold()
        bench.submit("other", queue="other", concurrency=key, priority=1)
        bench.transport.operators.pause("q")

        bench.transport.start([held])

        assert bench.drain(queues=("q", "other")) == ["other"]

    def test_a_queue_can_be_paused_before_its_first_message(self, bench: Bench) -> None:
        bench.transport.operators.pause("q")
        bench.submit("a")

        assert bench.reserve(1) == []
        assert [tuple(q) for q in bench.transport.operators.queues()] == [("q", True)]
