"""Leases and tokens: while a lease is live nobody else starts the message, and a lost one changes
nothing (I2, I3, I4, I5; P13)."""

from __future__ import annotations

import pytest

from taskmq.message import Delivery
from taskmq.policy.following import Consequence
from taskmq.states import AckMode, State
from taskmq.testing.conformance.bench import LEASE, Bench, Contract, names
from taskmq.transports.base import Outcome, Verb


class TestLeases(Contract):
    @pytest.fixture(autouse=True)
    def _needs_leases(self, bench: Bench) -> None:
        bench.needs("leases")

    def test_a_lease_runs_as_long_as_asked(self, bench: Bench) -> None:
        bench.submit("a")

        delivery = bench.take(lease=12.0)

        assert delivery.lease_until == pytest.approx(bench.clock.now() + 12.0)

    def test_every_delivery_of_a_batch_has_a_token_of_its_own(self, bench: Bench) -> None:
        bench.submit(*"abcdefgh")

        assert len({d.token for d in bench.reserve(8)}) == 8

    def test_a_live_lease_is_not_taken_away(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        for _ in range(5):
            bench.clock.advance(LEASE / 6)
            assert bench.reap() == 0

        assert bench.finish(delivery)

    def test_a_renewed_lease_is_not_taken_away(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        for _ in range(10):
            bench.clock.advance(LEASE / 2)
            assert bench.transport.extend([delivery], LEASE) == ()
            assert bench.reap() == 0

        assert bench.finish(delivery)

    def test_a_running_message_is_redelivered_once_its_lease_is_lost(self, bench: Bench) -> None:
        bench.submit("a")
        first = bench.take()

        assert bench.lose_leases() == 1
        second = bench.take(worker="w2")

        assert second.message == first.message
        assert second.token != first.token
        assert second.deliveries == 2

    def test_one_look_is_not_enough(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        bench.clock.advance(LEASE + 1)

        assert bench.reap() == 0
        assert bench.reserve(1) == []
        assert bench.finish(delivery)

    def test_a_lease_renewed_between_two_looks_is_kept(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        bench.clock.advance(LEASE + 1)
        bench.reap()
        bench.transport.extend([delivery], LEASE)
        bench.clock.advance(LEASE / 2)

        assert bench.reap() == 0
        assert bench.finish(delivery)

    def test_a_clock_that_jumps_forward_ends_no_lease_at_once(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        bench.reap()
        bench.clock.step(3600)
        bench.reap()
        bench.clock.advance(LEASE / 2)

        assert bench.reap() == 0
        assert bench.finish(delivery)

    def test_a_clock_that_jumps_back_makes_no_lease_immortal(self, bench: Bench) -> None:
        bench.submit("a")
        bench.take()
        bench.reap()
        bench.clock.step(-3600)
        bench.reap()
        for _ in range(8):
            bench.clock.advance(LEASE / 2)
            bench.reap()

        assert bench.take(worker="w2").deliveries == 2

    @pytest.mark.parametrize("renewed", [False, True])
    def test_a_clock_that_jumps_back_before_the_first_look_makes_none_either(
        self, bench: Bench, renewed: bool
    ) -> None:
        bench.submit("a")
        first = bench.take()
        if renewed:
            bench.transport.extend([first], LEASE / 2)
        bench.clock.step(-3600)
        for _ in range(8):
            bench.reap()
            bench.clock.advance(LEASE / 2)

        assert bench.take(worker="w2").deliveries == 2

    def test_a_lease_is_kept_for_its_length_when_the_clock_jumps_back(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take(lease=3 * LEASE)
        bench.clock.step(-3600)
        bench.reap()
        bench.clock.advance(2 * LEASE)
        bench.reap()
        bench.clock.advance(LEASE / 2)

        assert bench.reap() == 0
        assert bench.finish(delivery)

    def test_a_lost_lease_is_said_with_task_and_worker(self, bench: Bench) -> None:
        bench.submit("a")
        bench.take(worker="w1")
        bench.clock.advance(LEASE + 1)
        bench.reap()
        bench.clock.advance(LEASE / 2)

        (note,) = bench.transport.coordination.reap().notes

        assert "task a: the lease of worker w1 was lost; it runs again" in note

    def test_an_unstarted_delivery_is_taken_back_without_counting(self, bench: Bench) -> None:
        bench.submit("a", max_deliveries=1)
        for _ in range(3):
            bench.hold()
            bench.lose_leases()

        assert bench.take().deliveries == 1
        assert bench.dead() == []

    def test_a_lost_message_returns_to_its_place(self, bench: Bench) -> None:
        bench.submit("a", "b")
        bench.take()
        bench.submit("c")
        bench.lose_leases()

        assert bench.drain() == ["a", "b", "c"]

    def test_max_deliveries_ends_in_a_dead_letter(self, bench: Bench) -> None:
        bench.submit("poison", max_deliveries=2, priority=9)
        bench.submit("good")
        for _ in range(2):
            assert bench.take().message.task_id == "poison"
            bench.lose_leases()

        (letter,) = bench.transport.operators.dead_letters()
        assert (letter.message.task_id, letter.reason, letter.deliveries) == (
            "poison",
            "crash-loop",
            2,
        )
        assert bench.state("poison") is State.DEAD
        assert bench.drain() == ["good"]

    def test_a_message_acknowledged_on_start_fails_when_its_lease_is_lost(
        self, bench: Bench
    ) -> None:
        bench.submit("once", ack=AckMode.ON_START)
        delivery = bench.take()
        bench.lose_leases()

        record = bench.transport.results.get("once")
        assert record is not None
        assert record.state is State.FAILED
        assert b"WorkerLost" in (record.body or b"")
        assert bench.dead() == ["once"]
        assert bench.reserve(1) == []
        assert not bench.finish(delivery)

    def test_a_message_acknowledged_on_start_but_not_started_is_redelivered(
        self, bench: Bench
    ) -> None:
        bench.submit("once", ack=AckMode.ON_START)
        bench.hold()
        bench.lose_leases()

        assert bench.take().message.task_id == "once"

    def test_a_late_acknowledged_message_is_redelivered_when_its_worker_is_lost(
        self, bench: Bench
    ) -> None:
        bench.submit("late", ack=AckMode.LATE)
        bench.take()
        bench.lose_leases()

        assert bench.take().deliveries == 2

    def test_a_lease_that_ended_but_was_not_taken_can_still_be_settled(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        bench.clock.advance(LEASE * 10)

        assert bench.finish(delivery)
        assert bench.state("a") is State.SUCCEEDED


class TestFencing(Contract):
    """What a worker that lost its lease can still do: nothing."""

    @pytest.fixture
    def stale(self, bench: Bench) -> Delivery:
        """A started delivery whose message is held by another worker by now."""
        bench.needs("leases")
        bench.submit("a")
        delivery = bench.take(worker="loser")
        bench.lose_leases()
        self.winner = bench.take(worker="winner")
        return delivery

    @pytest.mark.parametrize("verb", list(Verb))
    def test_a_stale_outcome_changes_nothing(
        self, bench: Bench, stale: Delivery, verb: Verb
    ) -> None:
        outcome = Outcome(
            delivery=stale,
            verb=verb,
            result=bench.record(stale, State.FAILED),
            then=Consequence(submits=(bench.message("follows"),)),
            reason="stale",
            delay=5,
        )

        lost = bench.transport.settle([outcome])

        assert names(lost) == ["a"]
        assert bench.transport.results.get("a") is None
        assert bench.state("follows") is State.UNKNOWN
        assert bench.dead() == []
        assert bench.state("a") is State.RUNNING
        assert bench.finish(self.winner)

    def test_a_stale_delivery_can_not_be_started_yielded_or_extended(
        self, bench: Bench, stale: Delivery
    ) -> None:
        assert names(bench.transport.start([stale]).refused) == ["a"]
        assert not bench.transport.yield_reservation(stale, delay=0)
        assert names(bench.transport.extend([stale], LEASE)) == ["a"]
        assert bench.finish(self.winner)

    def test_the_winner_is_not_extended_by_the_loser(self, bench: Bench, stale: Delivery) -> None:
        bench.transport.extend([stale], 1000 * LEASE)

        bench.lose_leases()

        assert bench.take().deliveries == 3

    def test_only_the_lost_ones_are_named(self, bench: Bench, stale: Delivery) -> None:
        bench.submit("b")
        other = bench.take()

        assert names(bench.transport.extend([other, stale], LEASE)) == ["a"]
        lost = bench.transport.settle([bench.succeeded(stale), bench.succeeded(other)])
        assert names(lost) == ["a"]
        assert bench.state("b") is State.SUCCEEDED

    def test_a_second_settle_is_lost(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()

        assert bench.finish(delivery)
        assert not bench.finish(delivery, body=b'"again"')

        record = bench.transport.results.get("a")
        assert record is not None
        assert record.body == b"null"
