"""What the SQLite transport's verbs cost, at several backlogs: a plain script, not a test.

    python -m tests.benchmarks.bench_sqlite [--rounds 3000] [--backlogs 1000,100000,1000000] [--queues 10]

Prints the median and the 99th percentile of each in microseconds. Flat over the backlogs is what counts;
the figures themselves are the machine's.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from taskmq.clock import SystemClock
from taskmq.message import Delivery, Message, ResultRecord
from taskmq.states import State
from taskmq.transports.base import Outcome, QueueShare, ReserveRequest, Settings, Verb
from taskmq.transports.sqlite import SQLiteTransport

BODY = b'[[1, "two", {"three": 3}], {"note": "' + b"x" * 150 + b'"}, {}]'
PRIORITIES = (-9, -5, 0, 0, 0, 1, 5, 9, 0)


class Bench:
    """One transport, its queues, and ids that never repeat."""

    def __init__(self, path: Path, queues: int) -> None:
        self.transport = SQLiteTransport(path, Settings(), clock=SystemClock(), random=Random(1))
        self.transport.open()
        self.names = [f"q{i}" for i in range(queues)]
        self.shares = tuple(QueueShare(name) for name in self.names)
        self.random = Random(2)
        self.made = 0

    def message(self, **fields: object) -> Message:
        self.made += 1
        name = f"01J{self.made:023d}"
        return Message(
            message_id=name,
            task_id=name,
            root_id=name,
            task="project.tasks.work",
            queue=self.random.choice(self.names),
            priority=self.random.choice(PRIORITIES),
            body=BODY,
            **fields,  # type: ignore[arg-type]
        )

    def fill(self, count: int, **fields: object) -> None:
        while count > 0:
            self.transport.submit([self.message(**fields) for _ in range(min(count, 5000))])
            count -= 5000

    def request(self, slots: int) -> ReserveRequest:
        return ReserveRequest(worker="bench", queues=self.shares, slots=slots)

    def finish(self, delivery: Delivery) -> Outcome:
        now = time.time()
        record = ResultRecord(
            task_id=delivery.message.task_id,
            state=State.SUCCEEDED,
            body=b"42",
            ended_at=now,
            expires_at=now + 86400,
            task=delivery.message.task,
            worker="bench",
        )
        return Outcome(delivery=delivery, verb=Verb.FINISH, result=record)


def measure(rounds: int, call: Callable[[], object]) -> tuple[float, float, float]:
    """Median, 99th percentile and mean of one call, in microseconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    times.sort()
    return (
        times[len(times) // 2] * 1e6,
        times[int(len(times) * 0.99)] * 1e6,
        sum(times) / len(times) * 1e6,
    )


def report(name: str, figures: tuple[float, float, float], per: int = 1) -> None:
    median, high, mean = figures
    each = f"  {median / per:7.1f} each" if per > 1 else ""
    print(f"  {name:34s} p50 {median:8.1f}  p99 {high:9.1f}  mean {mean:8.1f} us{each}")


def run(bench: Bench, rounds: int) -> None:
    transport = bench.transport
    report("build a message", measure(rounds, bench.message))
    report("submit 1", measure(rounds, lambda: transport.submit([bench.message()])))
    batch = max(10, rounds // 100)
    report(
        "submit 100",
        measure(batch, lambda: transport.submit([bench.message() for _ in range(100)])),
        per=100,
    )
    for slots in (1, 8, 32):
        held: list[Delivery] = list(transport.reserve(bench.request(slots)))

        def turn(slots: int = slots, held: list[Delivery] = held) -> None:
            outcomes = [bench.finish(delivery) for delivery in held]
            held[:] = transport.turn(outcomes, bench.request(slots)).deliveries
            assert len(held) == slots

        report(f"turn: settle and reserve {slots}", measure(rounds // slots, turn), per=slots)
        transport.settle([bench.finish(delivery) for delivery in held])
    report("peek", measure(rounds, lambda: transport.peek_max_priority(bench.shares)))
    nothing = ReserveRequest(worker="bench", queues=(QueueShare("empty"),), slots=1)
    report("idle turn", measure(rounds, lambda: transport.turn((), nothing)))
    report("next_due", measure(rounds, lambda: transport.next_due(bench.shares)))
    report("depth", measure(3, transport.operators.depth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--backlogs", default="1000,100000")
    parser.add_argument("--queues", type=int, default=10)
    parser.add_argument("--future", type=int, default=0, help="messages with an eta far ahead")
    arguments = parser.parse_args()
    for backlog in map(int, arguments.backlogs.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            bench = Bench(Path(directory) / "bench.db", arguments.queues)
            bench.fill(backlog + 42 * arguments.rounds // 10)
            bench.fill(arguments.future, eta=time.time() + 1e6)
            size = os.path.getsize(bench.transport.path) // 1_000_000
            print(
                f"{backlog} ready, {arguments.future} future, {arguments.queues} queues, {size} MB"
            )
            run(bench, arguments.rounds)
            bench.transport.close()


if __name__ == "__main__":
    main()
