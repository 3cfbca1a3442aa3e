"""Holding unstarted: what waits at the worker against what waits in the store (P10, P16), and starting."""

from __future__ import annotations

from taskmq.message import Delivery
from taskmq.states import State
from taskmq.testing.conformance.bench import Bench, Contract, names


class TestHolding(Contract):
    def hold(self, bench: Bench, count: int, **fields: object) -> list[Delivery]:
        return bench.reserve(0, room=count, **fields)

    def test_room_is_filled_with_unstarted_deliveries(self, bench: Bench) -> None:
        bench.submit("a", "b", "c")

        taken = bench.reserve(1, room=1)

        assert [(d.message.task_id, d.started) for d in taken] == [("a", True), ("b", False)]
        assert bench.state("a") is State.RUNNING
        assert bench.state("b") is State.RESERVED
        assert bench.state("c") is State.QUEUED

    def test_a_free_slot_takes_the_held_one_when_nothing_better_is_stored(
        self, bench: Bench
    ) -> None:
        bench.submit("held", priority=3)
        (held,) = self.hold(bench, 1)
        bench.submit("stored", priority=2)

        turn = bench.turn((), 1, waiting=[held])

        assert names(turn.deliveries) == ["held"]
        assert turn.deliveries[0].started

    def test_a_free_slot_takes_the_stored_one_when_it_is_more_urgent(self, bench: Bench) -> None:
        bench.submit("held", priority=3)
        (held,) = self.hold(bench, 1)
        bench.submit("stored", priority=4)

        turn = bench.turn((), 1, waiting=[held])

        assert names(turn.deliveries) == ["stored"]
        assert bench.state("held") is State.RESERVED

    def test_on_a_tie_the_held_one_goes_first(self, bench: Bench) -> None:
        bench.submit("held")
        (held,) = self.hold(bench, 1)
        bench.submit("stored")

        assert names(bench.turn((), 2, waiting=[held]).deliveries) == ["held", "stored"]

    def test_held_ones_start_in_sort_order(self, bench: Bench) -> None:
        bench.submit("low", priority=-1)
        low = self.hold(bench, 1)
        bench.submit("a", "b", priority=1)
        held = self.hold(bench, 2)

        turn = bench.turn((), 3, waiting=[*low, held[1], held[0]])

        assert names(turn.deliveries) == ["a", "b", "low"]

    def test_starting_keeps_token_and_delivery_count(self, bench: Bench) -> None:
        bench.submit("a")
        (held,) = self.hold(bench, 1)

        (started,) = bench.turn((), 1, waiting=[held]).deliveries

        assert started.started
        assert not held.started
        assert started.token == held.token
        assert started.deliveries == held.deliveries == 1

    def test_a_held_one_that_was_lost_is_refused_and_its_slot_goes_on(self, bench: Bench) -> None:
        bench.submit("gone", priority=9)
        (gone,) = self.hold(bench, 1)
        bench.transport.operators.revoke(["gone"])
        bench.submit("next")

        turn = bench.turn((), 1, waiting=[gone])

        assert names(turn.refused) == ["gone"]
        assert names(turn.deliveries) == ["next"]

    def test_a_settle_frees_the_slot_for_the_same_turn(self, bench: Bench) -> None:
        bench.submit("a", "b")
        first = bench.take()

        turn = bench.turn([bench.succeeded(first)], 1)

        assert names(turn.deliveries) == ["b"]
        assert bench.state("a") is State.SUCCEEDED


class TestStart(Contract):
    def test_start_marks_running(self, bench: Bench) -> None:
        bench.submit("a")
        held = bench.hold()

        result = bench.transport.start([held])

        assert names(result.started) == ["a"]
        assert result.started[0].started
        assert result.refused == ()
        assert bench.state("a") is State.RUNNING

    def test_one_that_was_taken_away_is_refused(self, bench: Bench) -> None:
        bench.submit("a", "b")
        first, second = bench.reserve(0, room=2)
        bench.transport.operators.revoke(["a"])

        result = bench.transport.start([first, second])

        assert names(result.refused) == ["a"]
        assert names(result.started) == ["b"]

    def test_an_expired_one_is_refused_and_ends_as_expired(self, bench: Bench) -> None:
        bench.submit("a", expires_at=bench.clock.now() + 5)
        held = bench.hold()
        bench.clock.advance(5)

        result = bench.transport.start([held])

        assert names(result.refused) == ["a"]
        assert bench.state("a") is State.EXPIRED
        assert bench.dead() == []

    def test_a_started_one_does_not_expire(self, bench: Bench) -> None:
        bench.submit("a", expires_at=bench.clock.now() + 5)
        running = bench.take()
        bench.clock.advance(10)
        bench.sweep()

        assert bench.state("a") is State.RUNNING
        assert bench.finish(running)
        assert bench.state("a") is State.SUCCEEDED
