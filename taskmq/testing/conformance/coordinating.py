"""Coordination: workers, commands and replies, the ring of events, duties with one holder at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taskmq.coordination.base import Coordination, WorkerInfo
from taskmq.testing.conformance.bench import Bench, Contract


class TestCoordination(Contract):
    def info(self, bench: Bench, name: str, **fields: Any) -> WorkerInfo:
        now = bench.clock.now()
        info = WorkerInfo(
            name=name,
            pid=7,
            host="host",
            queues=("q", "email"),
            slots=4,
            free_slots=1,
            started_at=now,
            seen_at=now,
            last_poll_at=now,
            tasks=("t1",),
            details={"pool": "threads"},
        )
        return replace(info, **fields)

    def coordination(self, bench: Bench, *workers: str) -> Coordination:
        coordination = bench.transport.coordination
        for name in workers:
            coordination.report(self.info(bench, name))
        return coordination

    def test_a_worker_is_seen_as_it_reported_itself(self, bench: Bench) -> None:
        coordination = self.coordination(bench, "w1")

        assert coordination.workers() == [self.info(bench, "w1")]

    def test_a_later_report_replaces_the_earlier_one(self, bench: Bench) -> None:
        coordination = self.coordination(bench, "w1")

        coordination.report(self.info(bench, "w1", state="draining", free_slots=0))

        assert [(w.state, w.free_slots) for w in coordination.workers()] == [("draining", 0)]

    def test_workers_are_listed_by_name(self, bench: Bench) -> None:
        coordination = self.coordination(bench, "w2", "w1")

        assert [w.name for w in coordination.workers()] == ["w1", "w2"]

    def test_one_that_was_not_seen_lately_is_left_out(self, bench: Bench) -> None:
        coordination = self.coordination(bench, "old")
        bench.clock.advance(61)
        coordination.report(self.info(bench, "new"))

        assert [w.name for w in coordination.workers()] == ["new"]
        assert [w.name for w in coordination.workers(seen_within=3600)] == ["new", "old"]

    def test_one_that_left_is_gone(self, bench: Bench) -> None:
        coordination = self.coordination(bench, "w1", "w2")
        coordination.send("ping", to=["w1"])

        coordination.leave("w1")

        assert [w.name for w in coordination.workers()] == ["w2"]
        assert coordination.commands("w1") == []

    def test_a_command_reaches_every_live_worker_once(self, bench: Bench) -> None:
        coordination = self.coordination(bench, "w1", "w2")

        assert sorted(coordination.send("ping", {"x": 1}, reply_to="r")) == ["w1", "w2"]

        for name in ("w1", "w2"):
            (command,) = coordination.commands(name)
            assert (command.name, dict(command.arguments), command.reply_to) == (
                "ping",
                {"x": 1},
                "r",
            )
            assert coordination.commands(name) == []

    def test_a_command_to_one_worker_reaches_no_other(self, bench: Bench) -> None:
        coordination = self.coordination(bench, "w1", "w2")

        assert coordination.send("shutdown", to=["w2"]) == ["w2"]

        assert coordination.commands("w1") == []
        assert [c.name for c in coordination.commands("w2")] == ["shutdown"]

    def test_commands_come_in_the_order_they_were_sent(self, bench: Bench) -> None:
        coordination = self.coordination(bench, "w1")
        for name in ("a", "b", "c"):
            coordination.send(name)

        assert [c.name for c in coordination.commands("w1")] == ["a", "b", "c"]

    def test_an_expired_command_does_not_arrive(self, bench: Bench) -> None:
        coordination = self.coordination(bench, "w1")
        coordination.send("shutdown", expires=5)
        bench.clock.advance(6)

        assert coordination.commands("w1") == []

    def test_with_no_worker_alive_nobody_is_told(self, bench: Bench) -> None:
        assert bench.transport.coordination.send("ping") == []

    def test_replies_are_taken_once(self, bench: Bench) -> None:
        coordination = self.coordination(bench)
        coordination.reply("r", "w1", {"ok": "pong"})
        coordination.reply("r", "w2", {"ok": "pong"})
        coordination.reply("other", "w1", {"ok": 1})

        assert sorted((w, dict(a)) for w, a in coordination.replies("r"))[0] == (
            "w1",
            {"ok": "pong"},
        )
        assert coordination.replies("r") == []
        assert len(coordination.replies("other")) == 1

    def test_events_are_numbered_and_read_from_where_one_stopped(self, bench: Bench) -> None:
        coordination = self.coordination(bench)
        at = bench.clock.now()
        coordination.emit([("a", at, {"x": 1}), ("b", at + 1, {})])
        first, second = coordination.events()

        coordination.emit([("c", at + 2, {"y": [1, None]})])

        assert (first.kind, first.at, dict(first.fields)) == ("a", at, {"x": 1})
        assert [e.kind for e in coordination.events(after=first.number)] == ["b", "c"]
        assert [e.kind for e in coordination.events(limit=1)] == ["a"]
        (third,) = coordination.events(after=second.number)
        assert coordination.last_event() == third.number

    def test_without_events_the_last_number_is_zero(self, bench: Bench) -> None:
        assert bench.transport.coordination.last_event() == 0
        assert bench.transport.coordination.events() == []

    def test_the_ring_forgets_the_oldest(self, bench: Bench) -> None:
        coordination = self.coordination(bench)
        at = bench.clock.now()
        for start in range(0, 40_000, 4000):
            coordination.emit([("e", at, {"n": n}) for n in range(start, start + 4000)])
            bench.sweep()

        kept = []
        after = 0
        while page := coordination.events(after=after, limit=5000):
            kept += page
            after = page[-1].number

        assert kept[-1].fields["n"] == 39_999
        assert 1000 <= len(kept) < 40_000

    def test_a_duty_has_one_holder(self, bench: Bench) -> None:
        coordination = self.coordination(bench)

        assert coordination.take_duty("reap", "w1", 10)
        assert not coordination.take_duty("reap", "w2", 10)
        assert coordination.take_duty("reap", "w1", 10)
        assert coordination.take_duty("sweep", "w2", 10)

    def test_a_duty_passes_on_when_its_holder_is_gone(self, bench: Bench) -> None:
        coordination = self.coordination(bench)
        coordination.take_duty("reap", "w1", 10)
        bench.clock.advance(11)

        assert coordination.take_duty("reap", "w2", 10)
        assert not coordination.take_duty("reap", "w1", 10)

    def test_a_holder_keeps_its_duty_by_taking_it_again(self, bench: Bench) -> None:
        coordination = self.coordination(bench)
        for _ in range(5):
            assert coordination.take_duty("reap", "w1", 10)
            bench.clock.advance(8)

        assert not coordination.take_duty("reap", "w2", 10)

    def test_a_clock_that_jumps_back_makes_no_duty_immortal(self, bench: Bench) -> None:
        coordination = self.coordination(bench)
        coordination.take_duty("reap", "w1", 10)
        bench.clock.step(-3600)

        assert coordination.take_duty("reap", "w2", 10)
        assert not coordination.take_duty("reap", "w1", 10)

    def test_dropped_duties_are_free_at_once(self, bench: Bench) -> None:
        coordination = self.coordination(bench)
        coordination.take_duty("reap", "w1", 1000)
        coordination.take_duty("sweep", "w2", 1000)

        coordination.drop_duties("w1")

        assert coordination.take_duty("reap", "w2", 10)
        assert not coordination.take_duty("sweep", "w1", 10)

    def test_housekeeping_has_an_end(self, bench: Bench) -> None:
        for _ in range(1000):
            if not bench.transport.coordination.checkpoint().more:
                return
        raise AssertionError("1000 checkpoints, and each one says that there is more to do")
