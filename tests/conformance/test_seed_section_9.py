"""The twelve cases of the priority design's §9, by its numbers, over every transport.

     1  same queue: higher first, equal ones strictly first in first out
     2  a priority out of range or no int is an error where it is declared
     3  resolution: submit > task > queue > config
     4  G1: after 1000 of P0 and one P9 the next free slot takes the P9
     5  G2: unstarted P0 yield, the fewest that make room, and run later
     6  G3: a running P0 is not interrupted
     7  yields never lead to a dead letter; at max_yields a message yields no more
     8  two queues of one band share by weight
     9  retry keeps the priority, a child inherits it, a replay keeps it
    10  no message is claimed twice
    11  `status --by-priority` is right
    12  with aging or reserved slots a low priority is served in bounded time

The transport's part of each is here. What needs an app or a worker has the same numbers in
tests/integration/worker/test_seed_section_9.py, and item 11 is in tests/unit/cli/test_looking.py.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from taskmq.clock import SystemClock
from taskmq.message import Delivery, Message
from taskmq.policy.aging import Aging
from taskmq.policy.bands import Budget
from taskmq.policy.yielding import to_yield
from taskmq.states import State
from taskmq.testing.conformance import Bench, Contract
from taskmq.testing.conformance.bench import names
from taskmq.testing.conformance.concurrency import in_threads
from taskmq.transports.base import QueueShare, Settings, Verb
from taskmq.transports.sqlite import SQLiteTransport
from tests.support.processes import processes

CLAIMER = Path(__file__).parent / "claimer.py"


class Test01Order(Contract):
    def test_01_same_queue_higher_priority_first_equal_ones_first_in_first_out(
        self, bench: Bench
    ) -> None:
        order = Random(1)
        sent = [(f"m{i:03}", order.randint(-9, 9)) for i in range(300)]
        for name, priority in sent:
            bench.submit(name, priority=priority)

        assert bench.drain() == [name for name, _ in sorted(sent, key=lambda m: -m[1])]


class Test04FreeSlot(Contract):
    @pytest.mark.parametrize("queue", ["q", "other"])
    def test_04_the_next_free_slot_takes_the_urgent_one_behind_a_thousand(
        self, bench: Bench, queue: str
    ) -> None:
        bench.transport.submit([bench.message(f"bulk{i}", queue="q") for i in range(1000)])
        running = bench.take(queues=("q", "other"))
        bench.submit("urgent", priority=9, queue=queue)

        turn = bench.turn([bench.succeeded(running)], 1, queues=("q", "other"))

        assert names(turn.deliveries) == ["urgent"]


class Test05Yield(Contract):
    def test_05_the_fewest_unstarted_ones_yield_to_an_urgent_one_and_run_later(
        self, bench: Bench
    ) -> None:
        bulk = [f"bulk{i}" for i in range(8)]
        bench.submit(*bulk)
        held = bench.reserve(0, room=8)
        bench.submit("urgent", priority=9)

        yielded = self.make_room(bench, held)
        held = [d for d in held if d not in yielded]
        held += bench.reserve(0, room=len(yielded))

        assert names(yielded) == ["bulk7"]
        assert "urgent" in names(held)
        turn = bench.turn((), 1, waiting=held)
        assert names(turn.deliveries) == ["urgent"]

        # Nothing more urgent is left: nobody else yields, and every one of them runs, once.
        assert self.make_room(bench, held) == []
        ran = []
        for delivery in bench.transport.start([d for d in held if d.message.priority == 0]).started:
            ran.append(delivery.message.task_id)
            assert bench.finish(delivery)
        bench.clock.advance(1)
        again = bench.take()
        assert (again.message.task_id, again.deliveries, again.yields) == ("bulk7", 1, 1)
        assert sorted([*ran, "bulk7"]) == bulk

    def make_room(self, bench: Bench, held: list[Delivery]) -> list[Delivery]:
        chosen = to_yield(held, peeked=bench.peek(), room=0)
        assert all(bench.transport.yield_reservation(d, delay=0.1) for d in chosen)
        return chosen


class Test07YieldIsolation(Contract):
    def test_07_yields_never_bury_a_message_and_end_at_max_yields(self, bench: Bench) -> None:
        bench.make(max_yields=20)
        bench.submit("bulk", max_deliveries=2)

        for number in range(20):
            held = bench.hold()
            assert (held.yields, held.deliveries, held.yieldable) == (number, 1, True)
            bench.transport.yield_reservation(held, delay=0.1)
            bench.clock.advance(1)

        held = bench.hold()
        assert not held.yieldable
        assert to_yield([held], peeked=9, room=0) == []
        assert bench.dead() == []
        assert names(bench.transport.start([held]).started) == ["bulk"]


class Test08Fairness(Contract):
    @pytest.mark.parametrize("weights", [(1, 1), (1, 3), (2, 5)])
    def test_08_two_queues_of_one_band_share_by_weight(
        self, bench: Bench, weights: tuple[int, int]
    ) -> None:
        for queue in "ab":
            bench.transport.submit([bench.message(f"{queue}{i}", queue=queue) for i in range(100)])
        queues = [QueueShare(q, w) for q, w in zip("ab", weights, strict=True)]
        rounds = 100 // max(weights)

        taken = [bench.take(queues=queues) for _ in range(rounds * sum(weights))]

        shares = Counter(d.message.queue for d in taken)
        assert shares == {q: rounds * w for q, w in zip("ab", weights, strict=True)}


class Test09KeptPriority(Contract):
    def test_09_a_retry_keeps_the_priority(self, bench: Bench) -> None:
        bench.submit("a", priority=-4)
        bench.settle(bench.take(), Verb.RETRY, delay=5)
        bench.clock.advance(5)

        assert bench.take().message.priority == -4

    def test_09_a_replay_keeps_the_priority_unless_given_one(self, bench: Bench) -> None:
        operators = bench.transport.operators
        bench.submit("a", "b", priority=-4)
        for delivery in bench.reserve(2):
            bench.settle(delivery, Verb.BURY, reason="failed")
        first, second = (d.number for d in operators.dead_letters())

        operators.replay([first])
        operators.replay([second], priority=0)

        priorities = {d.message.task_id: d.message.priority for d in bench.reserve(2)}
        assert priorities == {"a": -4, "b": 0}


class Test10NoDoubleClaim(Contract):
    def test_10_threads_never_claim_one_message_twice(self, bench: Bench) -> None:
        bench.transport.submit([bench.message(f"m{i}", priority=i % 19 - 9) for i in range(300)])
        claimed: list[str] = []

        def consume(number: int) -> None:
            while found := bench.reserve(4, worker=f"w{number}"):
                claimed.extend(names(found))

        in_threads(4, consume)

        assert sorted(claimed) == sorted(f"m{i}" for i in range(300))

    def test_10_processes_never_claim_one_message_twice(self, tmp_path: Path) -> None:
        # Memory lives in one process; this is about those transports that several share.
        database = tmp_path / "shared.db"
        transport = SQLiteTransport(database, Settings(), clock=SystemClock(), random=Random(1))
        transport.open()
        sent = [self.message(i) for i in range(400)]
        transport.submit(sent)

        with processes(tmp_path) as started:
            claimers = [
                started.run([sys.executable, str(CLAIMER), str(database), str(n)], name="claimer")
                for n in range(3)
            ]
            for claimer in claimers:
                assert claimer.wait(30) == 0, started.log(claimer)
            claimed = [json.loads(line) for c in claimers for line in started.log(c).splitlines()]
        transport.close()

        assert sorted(claimed) == sorted(m.task_id for m in sent)

    def message(self, number: int) -> Message:
        name = f"m{number}"
        return Message(
            message_id=name,
            task_id=name,
            task="t",
            queue="q",
            body=b"[[],{},{}]",
            priority=number % 19 - 9,
        )


class Test12NoStarvation(Contract):
    def urgent_load(self, bench: Bench, seconds: int, **fields: object) -> list[str]:
        """One slot under more urgent work than it can do; what it ran, second by second."""
        ran = []
        for second in range(seconds):
            bench.submit(f"urgent{second}a", f"urgent{second}b", priority=5)
            delivery = bench.take(**fields)
            ran.append(delivery.message.task_id)
            bench.finish(delivery)
            bench.clock.advance(1)
        return ran

    def test_12_without_a_remedy_urgent_load_starves_the_low_ones(self, bench: Bench) -> None:
        bench.submit("low", priority=0)

        assert "low" not in self.urgent_load(bench, 50)

    def test_12_with_aging_a_low_one_is_served_within_its_worst_case(self, bench: Bench) -> None:
        bench.submit("low", priority=0)

        ran = self.urgent_load(bench, 100, aging=Aging(10.0, cap=9))

        # After 90 s it is at 9, above every urgent one that has waited less than 40 s, and of the
        # others it is the oldest.
        assert "low" in ran
        assert ran.index("low") <= 90

    def test_12_with_normal_reserved_slots_a_low_one_is_served_at_once(self, bench: Bench) -> None:
        bench.submit("low", priority=0)
        bench.submit(*(f"urgent{i}" for i in range(20)), priority=5)
        budget = Budget.of(slots=4, normal_reserved=1, urgent_reserved=0, threshold=5, running=[])

        taken = bench.reserve(4, budget=budget)

        assert names(taken) == ["urgent0", "urgent1", "urgent2", "low"]
        assert bench.state("low") is State.RUNNING
