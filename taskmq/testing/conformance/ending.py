"""Endings without a worker: expired and revoked tasks, each with a result and no dead letter (I7, I8)."""

from __future__ import annotations

import json

import pytest

from taskmq.message import ConcurrencyKey
from taskmq.states import State
from taskmq.testing.conformance.bench import Bench, Contract, names
from taskmq.transports.base import Verb


class TestExpiry(Contract):
    def test_an_expired_message_never_starts(self, bench: Bench) -> None:
        bench.submit("old", expires_at=bench.clock.now() + 5)
        bench.submit("fresh")
        bench.clock.advance(5)

        assert bench.drain() == ["fresh"]

    def test_until_its_expiry_it_can_start(self, bench: Bench) -> None:
        bench.submit("a", expires_at=bench.clock.now() + 5)
        bench.clock.advance(4.9)

        assert names(bench.reserve(1)) == ["a"]

    def test_it_ends_as_expired_and_makes_no_dead_letter(self, bench: Bench) -> None:
        bench.submit("old", expires_at=bench.clock.now() + 5)
        bench.clock.advance(5)
        bench.sweep()

        record = bench.transport.results.get("old")
        assert record is not None
        assert record.state is State.EXPIRED
        assert b"TaskExpired" in (record.body or b"")
        assert bench.state("old") is State.EXPIRED
        assert bench.dead() == []
        assert bench.transport.operators.depth() == []

    def test_it_expires_while_it_is_scheduled(self, bench: Bench) -> None:
        now = bench.clock.now()
        bench.submit("old", eta=now + 100, expires_at=now + 5)
        bench.clock.advance(5)
        bench.sweep()

        assert bench.state("old") is State.EXPIRED

    def test_one_that_expired_before_it_was_submitted_never_starts(self, bench: Bench) -> None:
        bench.submit("old", expires_at=bench.clock.now() - 1)

        assert bench.reserve(1) == []
        bench.sweep()
        assert bench.state("old") is State.EXPIRED

    def test_many_expired_ones_at_the_head_hide_nothing(self, bench: Bench) -> None:
        expires = bench.clock.now() + 5
        bench.transport.submit(
            [bench.message(f"old{i}", priority=9, expires_at=expires) for i in range(1500)]
        )
        bench.submit("fresh", priority=-9)
        bench.clock.advance(5)

        assert names(bench.reserve(1)) == ["fresh"]
        bench.sweep()
        assert bench.state("old1499") is State.EXPIRED

    def test_a_task_that_keeps_no_result_leaves_none(self, bench: Bench) -> None:
        bench.submit("old", expires_at=bench.clock.now() + 5, store_result=False)
        bench.clock.advance(5)
        bench.sweep()

        assert bench.transport.results.get("old") is None
        assert bench.state("old") is State.UNKNOWN

    def test_a_retry_that_comes_too_late_expires(self, bench: Bench) -> None:
        bench.submit("a", expires_at=bench.clock.now() + 5)
        bench.settle(bench.take(), Verb.RETRY, delay=10)
        bench.clock.advance(10)
        bench.sweep()

        assert bench.reserve(1) == []
        assert bench.state("a") is State.EXPIRED


class TestRevoke(Contract):
    def revoke(self, bench: Bench, *task_ids: str, reason: str = "") -> list[tuple[State, bool]]:
        answers = bench.transport.operators.revoke(task_ids, reason=reason)
        assert [a.task_id for a in answers] == list(task_ids)
        return [(a.was, a.ended) for a in answers]

    def test_a_queued_task_ends_as_revoked_and_never_starts(self, bench: Bench) -> None:
        bench.submit("a", "b")

        assert self.revoke(bench, "a", reason="not needed") == [(State.QUEUED, True)]

        assert bench.drain() == ["b"]
        record = bench.transport.results.get("a")
        assert record is not None
        assert record.state is State.REVOKED
        assert b"not needed" in (record.body or b"")
        assert bench.dead() == []

    def test_a_scheduled_task_ends_as_revoked(self, bench: Bench) -> None:
        bench.submit("a", eta=bench.clock.now() + 10)

        assert self.revoke(bench, "a") == [(State.SCHEDULED, True)]

        bench.clock.advance(20)
        assert bench.reserve(1) == []
        assert bench.state("a") is State.REVOKED

    def test_a_reserved_task_ends_and_its_delivery_is_lost(self, bench: Bench) -> None:
        bench.submit("a")
        held = bench.hold()

        assert self.revoke(bench, "a") == [(State.RESERVED, True)]

        assert names(bench.transport.start([held]).refused) == ["a"]
        assert not bench.finish(held)
        assert bench.state("a") is State.REVOKED

    def test_a_running_task_is_marked_and_goes_on(self, bench: Bench) -> None:
        bench.submit("a")
        running = bench.take()

        assert self.revoke(bench, "a") == [(State.RUNNING, False)]

        assert bench.transport.operators.is_revoked("a")
        assert bench.state("a") is State.RUNNING
        assert bench.finish(running)
        assert bench.state("a") is State.SUCCEEDED

    @pytest.mark.parametrize("verb", [Verb.RETRY, Verb.RELEASE])
    @pytest.mark.parametrize("delay", [0.0, 10.0])
    def test_a_marked_task_does_not_run_again(self, bench: Bench, verb: Verb, delay: float) -> None:
        bench.submit("a")
        running = bench.take()
        self.revoke(bench, "a")

        assert bench.settle(running, verb, delay=delay)
        bench.clock.advance(delay)

        assert bench.reserve(1) == []
        bench.sweep()
        assert bench.state("a") is State.REVOKED

    def test_a_marked_task_whose_worker_is_lost_does_not_run_again(self, bench: Bench) -> None:
        bench.needs("leases")
        bench.submit("a")
        bench.take()
        self.revoke(bench, "a")
        bench.lose_leases()

        assert bench.reserve(1) == []
        assert bench.state("a") is State.REVOKED

    def test_a_finished_task_stays_what_it_was(self, bench: Bench) -> None:
        bench.submit("a")
        bench.finish(bench.take())

        assert self.revoke(bench, "a") == [(State.SUCCEEDED, False)]
        assert bench.state("a") is State.SUCCEEDED

    def test_an_unknown_task_is_remembered_and_ends_at_submit(self, bench: Bench) -> None:
        assert self.revoke(bench, "later") == [(State.UNKNOWN, False)]
        assert bench.transport.operators.is_revoked("later")

        bench.submit("later")

        assert bench.reserve(1) == []
        assert bench.state("later") is State.REVOKED

    def test_a_mark_is_kept_only_so_long(self, bench: Bench) -> None:
        bench.make(revocation_expires=60.0)
        self.revoke(bench, "later")
        bench.clock.advance(61)
        bench.sweep()

        assert not bench.transport.operators.is_revoked("later")
        bench.submit("later")
        assert names(bench.reserve(1)) == ["later"]

    def test_many_at_once(self, bench: Bench) -> None:
        bench.submit("a", "b", "c")
        bench.take()

        answers = self.revoke(bench, "a", "b", "nobody")

        assert answers == [
            (State.RUNNING, False),
            (State.QUEUED, True),
            (State.UNKNOWN, False),
        ]

    def test_one_that_is_not_revoked_is_not(self, bench: Bench) -> None:
        bench.submit("a")

        assert not bench.transport.operators.is_revoked("a")


class TestFollowing(Contract):
    """What depends on a task that ended without a worker ends too, or is told."""

    def signature(self, task: str, task_id: str) -> dict[str, object]:
        return {
            "task": task,
            "args": [],
            "kwargs": {},
            "options": {"task_id": task_id, "queue": "q"},
            "subtask_type": None,
            "immutable": False,
        }

    @pytest.mark.parametrize("way", ["expire", "revoke", "lose"])
    def test_the_errback_is_submitted_once(self, bench: Bench, way: str) -> None:
        follow = json.dumps({"errbacks": [self.signature("tell", "errback-1")]})
        self.end(bench, way, follow)

        found = bench.reserve(5)

        assert [d.message.task for d in found] == ["tell"]

    @pytest.mark.parametrize("way", ["expire", "revoke", "lose", "purge"])
    def test_the_rest_of_the_chain_fails_and_says_so(self, bench: Bench, way: str) -> None:
        # Celery's order: the next step is the last of the list.
        chain = [self.signature("third", "step-3"), self.signature("second", "step-2")]
        self.end(bench, way, json.dumps({"chain": chain}))

        assert bench.reserve(5) == []
        for step in ("step-2", "step-3"):
            record = bench.transport.results.get(step)
            assert record is not None, step
            assert record.state is State.FAILED
            assert b"UpstreamFailed" in (record.body or b"")

    @pytest.mark.parametrize("way", ["expire", "revoke", "lose", "purge"])
    def test_the_chord_it_was_in_fails_and_says_so(self, bench: Bench, way: str) -> None:
        chord = {"key": "c", "index": 0, "size": 2, "body": self.signature("total", "body-1")}
        self.end(bench, way, json.dumps({"chord": chord}))

        record = bench.transport.results.get("body-1")
        assert record is not None
        assert record.state is State.FAILED
        assert b"UpstreamFailed" in (record.body or b"")
        assert bench.reserve(5) == []

    def end(self, bench: Bench, way: str, follow: str) -> None:
        expires = bench.clock.now() + 5 if way == "expire" else None
        bench.submit("a", follow=follow, expires_at=expires, max_deliveries=1)
        if way == "expire":
            bench.clock.advance(5)
            bench.sweep()
        elif way == "revoke":
            bench.transport.operators.revoke(["a"])
        elif way == "purge":
            bench.transport.operators.purge("q")
        else:
            bench.settle(bench.take(), Verb.RELEASE, counted=True)

    def test_a_key_is_free_for_the_errback(self, bench: Bench) -> None:
        bench.needs("shared_limits")
        follow = json.dumps({"errbacks": [self.signature("tell", "errback-1")]})
        bench.submit("a", "b", concurrency=ConcurrencyKey("one"), follow=follow)

        bench.transport.operators.revoke(["a"])

        assert sorted(d.message.task for d in bench.reserve(5)) == ["conformance.task", "tell"]
