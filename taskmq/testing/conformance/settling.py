"""Settling: each verb, what commits with it, and that one bad outcome never takes the others along."""

from __future__ import annotations

import re
from typing import Any

import pytest

from taskmq.message import ResultRecord
from taskmq.policy.following import Consequence
from taskmq.states import State
from taskmq.testing.conformance.bench import Bench, Contract, names
from taskmq.transports.base import Outcome, Verb


class TestFinish(Contract):
    def test_the_result_is_stored_and_the_message_is_gone(self, bench: Bench) -> None:
        bench.submit("a")

        assert bench.finish(bench.take(), body=b"42")

        record = bench.transport.results.get("a")
        assert record is not None
        assert (record.state, record.body) == (State.SUCCEEDED, b"42")
        assert bench.transport.operators.find("a") == []
        assert bench.transport.operators.depth() == []

    def test_without_a_result_what_is_stored_stays(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        progress = bench.record(delivery, State.RUNNING, body=b"0.5")
        bench.settle(delivery, Verb.REPORT, result=progress)

        bench.settle(delivery, Verb.FINISH)

        record = bench.transport.results.get("a")
        assert record is not None
        assert record.body == b"0.5"

    def test_what_follows_is_submitted_with_it(self, bench: Bench) -> None:
        bench.submit("a")
        follows = bench.message("next", priority=4)

        bench.finish(bench.take(), Consequence(submits=(follows,)))

        assert bench.take().message == follows

    def test_what_follows_can_be_reserved_in_the_same_turn(self, bench: Bench) -> None:
        bench.needs("atomic_turn")
        bench.submit("a")
        then = Consequence(submits=(bench.message("next"),))

        turn = bench.turn([bench.succeeded(bench.take(), then)], 1)

        assert names(turn.deliveries) == ["next"]

    def test_a_follow_up_that_exists_already_is_not_doubled(self, bench: Bench) -> None:
        bench.submit("a", "b")
        then = Consequence(submits=(bench.message("next"),))
        first, second = bench.reserve(2)

        bench.finish(first, then)
        bench.finish(second, then)

        assert bench.drain() == ["next"]

    def test_results_of_others_are_written_with_it(self, bench: Bench) -> None:
        bench.submit("a")
        never = ResultRecord(task_id="never-ran", state=State.FAILED, body=b"{}")

        bench.finish(bench.take(), Consequence(results=(never,)))

        assert bench.state("never-ran") is State.FAILED

    def test_an_unstarted_delivery_can_be_finished(self, bench: Bench) -> None:
        bench.submit("a")
        held = bench.hold()

        assert bench.finish(held)
        assert bench.reserve(1) == []


class TestRelease(Contract):
    def test_it_returns_to_its_place_and_the_delivery_is_taken_back(self, bench: Bench) -> None:
        bench.submit("a", "b", max_deliveries=1)
        bench.settle(bench.take(), Verb.RELEASE)
        bench.submit("c")

        again = bench.reserve(3)

        assert [(d.message.task_id, d.deliveries) for d in again] == [("a", 1), ("b", 1), ("c", 1)]

    def test_an_unstarted_delivery_can_be_released(self, bench: Bench) -> None:
        bench.submit("a")
        bench.settle(bench.hold(), Verb.RELEASE)

        assert (bench.state("a"), bench.take().deliveries) == (State.QUEUED, 1)

    def test_a_delay_is_a_not_before_and_keeps_the_place(self, bench: Bench) -> None:
        bench.needs("keeps_place")
        bench.submit("a", "b")
        bench.settle(bench.take(), Verb.RELEASE, delay=10)

        assert bench.state("a") is State.QUEUED
        assert bench.peek() == 0
        assert names(bench.reserve(2)) == ["b"]

        bench.submit("c")
        bench.clock.advance(10)
        assert names(bench.reserve(2)) == ["a", "c"]

    def test_a_counted_release_counts_the_delivery(self, bench: Bench) -> None:
        bench.submit("a")
        bench.settle(bench.take(), Verb.RELEASE, counted=True)

        assert bench.take().deliveries == 2

    def test_a_counted_release_after_max_deliveries_is_a_dead_letter(self, bench: Bench) -> None:
        bench.submit("a", max_deliveries=2)
        for _ in range(2):
            bench.settle(bench.take(), Verb.RELEASE, counted=True)

        assert bench.reserve(1) == []
        (letter,) = bench.transport.operators.dead_letters()
        assert (letter.reason, letter.deliveries) == ("crash-loop", 2)
        assert bench.state("a") is State.DEAD

    def test_the_reason_of_the_last_release_is_the_reason_of_the_dead_letter(
        self, bench: Bench
    ) -> None:
        bench.submit("a", max_deliveries=1)
        bench.settle(bench.take(), Verb.RELEASE, counted=True, reason="unknown-task", error="E: x")

        (letter,) = bench.transport.operators.dead_letters()
        assert (letter.reason, letter.error) == ("unknown-task", "E: x")


class TestRetry(Contract):
    def test_it_runs_again_after_its_delay(self, bench: Bench) -> None:
        bench.submit("a")
        bench.settle(bench.take(), Verb.RETRY, delay=10)

        assert bench.state("a") is State.RETRYING
        assert bench.reserve(1) == []

        bench.clock.advance(10)
        again = bench.take()
        assert (again.message.retries, again.deliveries) == (1, 1)

    def test_without_a_delay_it_runs_again_at_once(self, bench: Bench) -> None:
        bench.submit("a")
        bench.settle(bench.take(), Verb.RETRY)

        assert bench.take().message.retries == 1

    def test_retries_are_never_bounded_by_max_deliveries(self, bench: Bench) -> None:
        bench.submit("a", max_deliveries=1)
        for _ in range(5):
            assert bench.settle(bench.take(), Verb.RETRY)

        assert (bench.take().message.retries, bench.dead()) == (5, [])

    def test_it_keeps_its_priority(self, bench: Bench) -> None:
        bench.submit("a", priority=7)
        bench.settle(bench.take(), Verb.RETRY)

        again = bench.take()
        assert (again.message.priority, again.effective) == (7, 7)

    def test_it_takes_the_priority_it_is_given(self, bench: Bench) -> None:
        bench.submit("a", priority=7)
        bench.settle(bench.take(), Verb.RETRY, priority=-2)
        bench.submit("b", priority=0)

        assert bench.drain() == ["b", "a"]
        assert bench.transport.operators.depth() == []

    def test_it_takes_the_body_it_is_given_and_keeps_the_rest(self, bench: Bench) -> None:
        (message,) = bench.submit("a", headers={"x": 1}, follow="{}")
        bench.settle(bench.take(), Verb.RETRY, body=b'[["new"], {}, {}]')

        again = bench.take().message
        assert again.body == b'[["new"], {}, {}]'
        assert (again.headers, again.follow) == (message.headers, message.follow)

    def test_its_place_is_that_of_its_new_time(self, bench: Bench) -> None:
        bench.submit("a", "b")
        bench.settle(bench.take(), Verb.RETRY, delay=10)
        bench.clock.advance(5)
        bench.submit("c")
        bench.clock.advance(6)
        bench.submit("d")

        assert bench.drain() == ["b", "c", "a", "d"]

    def test_its_record_is_stored(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        record = bench.record(delivery, State.RETRYING, body=b'{"exc_type": "E"}')
        bench.settle(delivery, Verb.RETRY, delay=10, result=record)

        stored = bench.transport.results.get("a")
        assert stored is not None
        assert (stored.state, stored.body) == (State.RETRYING, b'{"exc_type": "E"}')


class TestBury(Contract):
    def test_it_becomes_a_dead_letter_with_its_reason(self, bench: Bench) -> None:
        (message,) = bench.submit("a")
        delivery = bench.take()
        record = bench.record(delivery, State.FAILED, body=b"{}")

        bench.settle(delivery, Verb.BURY, result=record, reason="rejected", error="ValueError: no")

        (letter,) = bench.transport.operators.dead_letters()
        assert letter.message == message
        assert (letter.reason, letter.error) == ("rejected", "ValueError: no")
        assert letter.died_at == bench.clock.now()
        assert bench.state("a") is State.FAILED
        assert bench.reserve(1) == []


class TestReport(Contract):
    def test_progress_is_stored_and_the_delivery_stays_held(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()

        assert bench.settle(
            delivery, Verb.REPORT, result=bench.record(delivery, State.RUNNING, body=b"0.5")
        )

        record = bench.transport.results.get("a")
        assert record is not None
        assert (record.state, record.body) == (State.RUNNING, b"0.5")
        assert bench.state("a") is State.RUNNING
        assert bench.finish(delivery)


class TestBatch(Contract):
    def test_many_outcomes_of_all_kinds_commit_together(self, bench: Bench) -> None:
        bench.submit("finish", "retry", "release", "bury")
        by_name = {d.message.task_id: d for d in bench.reserve(4)}
        outcomes = [
            bench.succeeded(by_name["finish"]),
            Outcome(delivery=by_name["retry"], verb=Verb.RETRY, delay=5),
            Outcome(delivery=by_name["release"], verb=Verb.RELEASE),
            Outcome(delivery=by_name["bury"], verb=Verb.BURY, reason="bad"),
        ]

        assert bench.transport.settle(outcomes) == ()

        assert bench.state("finish") is State.SUCCEEDED
        assert bench.state("retry") is State.RETRYING
        assert bench.state("release") is State.QUEUED
        assert bench.dead() == ["bury"]

    def test_one_result_that_is_too_large_fails_alone(self, bench: Bench) -> None:
        bench.make(max_body=1000)
        bench.submit("good", "large", "fine")
        good, large, fine = bench.reserve(3)
        outcomes = [
            bench.succeeded(good),
            bench.succeeded(large, Consequence(submits=(bench.message("next"),)), body=b"x" * 1001),
            bench.succeeded(fine),
        ]

        assert bench.transport.settle(outcomes) == ()

        assert bench.state("good") is State.SUCCEEDED
        assert bench.state("fine") is State.SUCCEEDED
        record = bench.transport.results.get("large")
        assert record is not None
        assert record.state is State.FAILED
        assert b"TooLarge" in (record.body or b"")
        assert bench.reserve(5) == []

    def test_one_follow_up_that_is_too_large_fails_its_task_alone(self, bench: Bench) -> None:
        bench.make(max_body=1000)
        bench.submit("a", "b")
        first, second = bench.reserve(2)
        large = Consequence(submits=(bench.message("next", body=b"x" * 1001),))

        assert (
            bench.transport.settle([bench.succeeded(first, large), bench.succeeded(second)]) == ()
        )

        assert bench.state("a") is State.FAILED
        assert bench.state("b") is State.SUCCEEDED
        assert bench.state("next") is State.UNKNOWN

    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ({"priority": 99}, b"PriorityError"),
            ({"priority": "9"}, b"PriorityError"),
            ({"delay": float("nan")}, b"nan"),
            ({"delay": "soon"}, b"soon"),
            ({"body": "text"}, b""),
        ],
        ids=["priority 99", "priority text", "delay nan", "delay text", "body text"],
    )
    def test_a_retry_with_a_wrong_value_fails_alone(
        self, bench: Bench, wrong: dict[str, Any], says: bytes
    ) -> None:
        bench.submit("good", "wrong", "fine")
        good, bad, fine = bench.reserve(3)
        outcomes = [
            bench.succeeded(good),
            Outcome(delivery=bad, verb=Verb.RETRY, **wrong),
            bench.succeeded(fine),
        ]

        assert bench.transport.settle(outcomes) == ()

        assert bench.state("good") is State.SUCCEEDED
        assert bench.state("fine") is State.SUCCEEDED
        record = bench.transport.results.get("wrong")
        assert record is not None
        assert record.state is State.FAILED
        assert re.search(says, record.body or b"")
        assert bench.reserve(5) == []

    def test_an_outcome_that_cannot_be_applied_at_all_ends_alone(self, bench: Bench) -> None:
        """Whatever a row refuses concerns one message: the turn of all the others goes on."""
        bench.submit("good", "odd", "fine")
        good, odd, fine = bench.reserve(3)
        odd_message: Any = object()
        broken = Consequence(submits=(odd_message,))
        outcomes = [bench.succeeded(good), bench.succeeded(odd, broken), bench.succeeded(fine)]

        assert bench.transport.settle(outcomes) == ()

        assert bench.state("good") is State.SUCCEEDED
        assert bench.state("fine") is State.SUCCEEDED
        assert bench.state("odd") is State.FAILED
        bench.submit("next")
        assert names(bench.reserve(5)) == ["next"]

    def test_one_lost_outcome_does_not_stop_the_others(self, bench: Bench) -> None:
        bench.submit("a", "b")
        first, second = bench.reserve(2)
        bench.finish(first)

        lost = bench.transport.settle([bench.succeeded(first), bench.succeeded(second)])

        assert names(lost) == ["a"]
        assert bench.state("b") is State.SUCCEEDED
