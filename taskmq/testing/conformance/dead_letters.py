"""Dead letters: kept with a reason, listed by number, replayed as new deliveries (P7), dropped, swept."""

from __future__ import annotations

import pytest

from taskmq.message import Message
from taskmq.states import State
from taskmq.testing.conformance.bench import Bench, Contract
from taskmq.transports.base import Verb


class TestDeadLetters(Contract):
    def bury(self, bench: Bench, *task_ids: str, **fields: object) -> list[Message]:
        messages = bench.submit(*task_ids, **fields)
        for message in messages:
            delivery = bench.take(queues=(message.queue,))
            record = bench.record(delivery, State.FAILED, body=b"{}")
            bench.settle(delivery, Verb.BURY, result=record, reason="bad", error="E: bad")
        return messages

    def numbers(self, bench: Bench) -> list[int]:
        return [d.number for d in bench.transport.operators.dead_letters(limit=1000)]

    def test_they_are_listed_oldest_first_by_number(self, bench: Bench) -> None:
        self.bury(bench, "a", "b", "c")

        numbers = self.numbers(bench)

        assert bench.dead() == ["a", "b", "c"]
        assert numbers == sorted(set(numbers))

    def test_a_page_begins_after_a_number(self, bench: Bench) -> None:
        self.bury(bench, "a", "b", "c")
        first, second, third = self.numbers(bench)
        operators = bench.transport.operators

        assert [d.number for d in operators.dead_letters(limit=2)] == [first, second]
        assert [d.number for d in operators.dead_letters(after=second)] == [third]

    def test_of_one_queue(self, bench: Bench) -> None:
        self.bury(bench, "a", queue="x")
        self.bury(bench, "b", queue="y")

        letters = bench.transport.operators.dead_letters(queue="y")

        assert [d.message.task_id for d in letters] == ["b"]

    def test_one_is_found_by_number_or_task_id(self, bench: Bench) -> None:
        self.bury(bench, "a", "b")
        operators = bench.transport.operators
        number = self.numbers(bench)[1]

        by_number = operators.dead_letter(str(number))
        assert by_number is not None
        assert by_number.message.task_id == "b"
        assert operators.dead_letter("b") == by_number
        assert operators.dead_letter("nobody") is None
        assert operators.dead_letter("999999") is None

    def test_find_shows_a_dead_letter(self, bench: Bench) -> None:
        self.bury(bench, "a")

        (found,) = bench.transport.operators.find("a")

        assert found.state is State.DEAD
        assert found.dead is not None
        assert found.dead.reason == "bad"

    def test_a_replay_queues_it_again_with_its_priority(self, bench: Bench) -> None:
        (message,) = self.bury(bench, "a", priority=7)

        replayed = bench.transport.operators.replay(self.numbers(bench))

        assert [(m.task_id, m.priority) for m in replayed] == [("a", 7)]
        assert bench.dead() == []
        again = bench.take()
        assert again.message.task_id == message.task_id
        assert again.message.body == message.body
        assert (again.message.priority, again.deliveries, again.yields) == (7, 1, 0)

    def test_a_replay_has_all_its_retries_again(self, bench: Bench) -> None:
        self.bury(bench, "a", retries=3)

        bench.transport.operators.replay(self.numbers(bench))

        assert bench.take().message.retries == 0

    def test_a_replay_can_be_given_a_priority(self, bench: Bench) -> None:
        self.bury(bench, "a", priority=7)

        bench.transport.operators.replay(self.numbers(bench), priority=0)

        assert bench.take().message.priority == 0

    def test_a_replay_is_a_new_arrival(self, bench: Bench) -> None:
        self.bury(bench, "a")
        bench.submit("b")

        bench.transport.operators.replay(self.numbers(bench))

        assert bench.drain() == ["b", "a"]

    def test_a_replay_forgets_the_old_ending(self, bench: Bench) -> None:
        self.bury(bench, "a")
        assert bench.state("a") is State.FAILED

        bench.transport.operators.replay(self.numbers(bench))

        assert bench.state("a") is State.QUEUED
        assert bench.transport.results.get("a") is None
        assert bench.transport.results.wait(["a"], 0) == {}

    def test_a_past_expiry_is_cleared(self, bench: Bench) -> None:
        self.bury(bench, "a", expires_at=bench.clock.now() + 5)
        bench.clock.advance(60)

        bench.transport.operators.replay(self.numbers(bench))

        assert bench.take().message.expires_at is None

    def test_an_expiry_to_come_is_kept(self, bench: Bench) -> None:
        (message,) = self.bury(bench, "a", expires_at=bench.clock.now() + 500)

        bench.transport.operators.replay(self.numbers(bench))

        assert bench.take().message.expires_at == message.expires_at

    def test_a_past_eta_does_not_delay_it(self, bench: Bench) -> None:
        bench.submit("a", eta=bench.clock.now() + 50)
        bench.clock.advance(50)
        bench.settle(bench.take(), Verb.BURY, reason="bad")
        bench.clock.step(-3600)

        bench.transport.operators.replay(self.numbers(bench))

        assert bench.take().message.task_id == "a"

    def test_the_deliveries_are_counted_anew(self, bench: Bench) -> None:
        bench.submit("a", max_deliveries=1)
        bench.settle(bench.take(), Verb.RELEASE, counted=True)

        bench.transport.operators.replay(self.numbers(bench))

        assert bench.take().deliveries == 1
        assert bench.dead() == []

    def test_numbers_that_are_gone_are_skipped(self, bench: Bench) -> None:
        self.bury(bench, "a")
        (number,) = self.numbers(bench)

        assert bench.transport.operators.replay([number + 1, number, number]) != []
        assert bench.transport.operators.replay([number]) == []
        assert bench.drain() == ["a"]

    def test_a_number_is_not_used_twice(self, bench: Bench) -> None:
        self.bury(bench, "a")
        (first,) = self.numbers(bench)
        bench.transport.operators.drop([first])
        self.bury(bench, "b")

        assert self.numbers(bench)[0] > first

    def test_a_dropped_one_is_gone(self, bench: Bench) -> None:
        self.bury(bench, "a", "b")
        first, second = self.numbers(bench)

        assert bench.transport.operators.drop([first, first + 1000]) == 1

        assert self.numbers(bench) == [second]

    def test_old_ones_are_swept(self, bench: Bench) -> None:
        bench.make(dead_letter_expires=60.0)
        self.bury(bench, "old")
        bench.clock.advance(50)
        self.bury(bench, "young")
        bench.clock.advance(11)
        bench.sweep()

        assert bench.dead() == ["young"]

    @pytest.mark.parametrize("kept", [None, 0])
    def test_they_are_kept_for_ever_when_told_so(self, bench: Bench, kept: float | None) -> None:
        bench.make(dead_letter_expires=kept)
        self.bury(bench, "a")
        bench.clock.advance(10 * 365 * 86_400)
        bench.sweep()

        assert bench.dead() == ["a"]
