"""Chords: counted in the transaction that settles the member, completed or failed exactly once."""

from __future__ import annotations

from taskmq.message import Delivery, ResultRecord
from taskmq.policy.following import ChordFailure, ChordPart, Consequence
from taskmq.states import State
from taskmq.testing.conformance.bench import Bench, Contract
from taskmq.transports.base import Verb


class TestChord(Contract):
    def part(
        self, bench: Bench, index: int, value: bytes, size: int = 3, key: str = "c"
    ) -> Consequence:
        return Consequence(
            chords=(
                ChordPart(
                    key=key,
                    index=index,
                    size=size,
                    part=value,
                    then=bench.message(f"body-{key}", priority=6, body=b""),
                    prefix=b"[[[",
                    suffix=b"]], {}, {}]",
                ),
            )
        )

    def failure(self, bench: Bench, name: str, size: int = 3, key: str = "c") -> Consequence:
        body = ResultRecord(task_id=f"body-{key}", state=State.FAILED, body=name.encode())
        return Consequence(
            chords=(
                ChordFailure(
                    key=key,
                    size=size,
                    results=(body,),
                    submits=(bench.message(f"errback-{name}"),),
                ),
            )
        )

    def members(self, bench: Bench, count: int = 3) -> list[Delivery]:
        bench.submit(*(f"m{i}" for i in range(count)))
        return bench.reserve(count)

    def test_the_last_member_submits_the_body_with_all_parts_in_their_order(
        self, bench: Bench
    ) -> None:
        first, second, third = self.members(bench)

        bench.finish(third, self.part(bench, 2, b'"c"'))
        bench.finish(first, self.part(bench, 0, b'{"a": 1}'))
        assert bench.reserve(1) == []
        bench.finish(second, self.part(bench, 1, b"null"))

        body = bench.take().message
        assert body.task_id == "body-c"
        assert body.priority == 6
        assert body.body == b'[[[{"a": 1},null,"c"]], {}, {}]'

    def test_members_settled_in_one_batch_complete_it_once(self, bench: Bench) -> None:
        members = self.members(bench)

        bench.transport.settle(
            [
                bench.succeeded(member, self.part(bench, i, str(i).encode()))
                for i, member in enumerate(members)
            ]
        )

        assert [d.message.body for d in bench.reserve(5)] == [b"[[[0,1,2]], {}, {}]"]

    def test_a_chord_of_one_completes_at_once(self, bench: Bench) -> None:
        (member,) = self.members(bench, 1)

        bench.finish(member, self.part(bench, 0, b"7", size=1))

        assert bench.take().message.body == b"[[[7]], {}, {}]"

    def test_more_than_nine_parts_keep_their_order(self, bench: Bench) -> None:
        members = self.members(bench, 12)
        for index in reversed(range(12)):
            bench.finish(members[index], self.part(bench, index, b"%d" % index, size=12))

        assert bench.take().message.body == b"[[[0,1,2,3,4,5,6,7,8,9,10,11]], {}, {}]"

    def test_a_member_counted_once_is_not_counted_again(self, bench: Bench) -> None:
        first, second, third = self.members(bench)

        bench.finish(first, self.part(bench, 0, b"0"))
        bench.finish(second, self.part(bench, 0, b"9"))
        assert bench.reserve(1) == []
        bench.finish(third, self.part(bench, 1, b"1"))

        assert bench.reserve(1) == []

    def test_a_stale_member_is_not_counted(self, bench: Bench) -> None:
        first, second, third = self.members(bench)
        bench.settle(first, Verb.RELEASE)

        assert not bench.finish(first, self.part(bench, 0, b"0"))
        bench.finish(second, self.part(bench, 1, b"1"))
        bench.finish(third, self.part(bench, 2, b"2"))

        assert bench.state("body-c") is State.UNKNOWN

    def test_chords_do_not_mix(self, bench: Bench) -> None:
        members = self.members(bench, 4)
        for index, member in enumerate(members):
            key = "xy"[index % 2]
            bench.finish(member, self.part(bench, index // 2, b"%d" % index, size=2, key=key))

        bodies = {d.message.task_id: d.message.body for d in bench.reserve(5)}
        assert bodies == {
            "body-x": b"[[[0,2]], {}, {}]",
            "body-y": b"[[[1,3]], {}, {}]",
        }

    def test_the_first_failure_ends_it(self, bench: Bench) -> None:
        first, second, third = self.members(bench)
        bench.finish(first, self.part(bench, 0, b"0"))

        bench.settle(second, Verb.FINISH, then=self.failure(bench, "second"))

        assert bench.state("body-c") is State.FAILED
        assert bench.drain() == ["errback-second"]
        bench.finish(third, self.part(bench, 2, b"2"))
        assert bench.reserve(1) == []

    def test_a_second_failure_changes_nothing(self, bench: Bench) -> None:
        first, second, _ = self.members(bench)

        bench.settle(first, Verb.FINISH, then=self.failure(bench, "first"))
        bench.settle(second, Verb.FINISH, then=self.failure(bench, "second"))

        assert bench.drain() == ["errback-first"]
        record = bench.transport.results.get("body-c")
        assert record is not None
        assert record.body == b"first"

    def test_a_failure_after_the_last_part_changes_nothing(self, bench: Bench) -> None:
        first, second = self.members(bench, 2)
        bench.finish(first, self.part(bench, 0, b"0", size=1))

        bench.settle(second, Verb.FINISH, then=self.failure(bench, "late", size=1))

        assert bench.drain() == ["body-c"]

    def test_a_body_that_grew_too_large_fails_and_says_so(self, bench: Bench) -> None:
        bench.make(max_body=1000)
        members = self.members(bench)
        for index, member in enumerate(members):
            assert bench.finish(member, self.part(bench, index, b'"' + b"x" * 500 + b'"'))

        assert [bench.state(f"m{i}") for i in range(3)] == [State.SUCCEEDED] * 3
        record = bench.transport.results.get("body-c")
        assert record is not None
        assert record.state is State.FAILED
        assert b"TooLarge" in (record.body or b"")
        assert bench.reserve(1) == []
