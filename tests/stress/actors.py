"""The processes of the bare transport's test: producers and consumers that do at random what a worker may.

They know no pool and no tasks: so more of their time goes into transactions, which is where they are killed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from random import Random

from taskmq.clock import SystemClock
from taskmq.message import Delivery, Message, ResultRecord
from taskmq.states import State
from taskmq.transports.base import Outcome, QueueShare, ReserveRequest, Settings, Verb
from taskmq.transports.sqlite import SQLiteTransport
from tests.stress import instrument
from tests.stress.log import Log, to_monotonic

LEASE = 0.6
QUEUES = ("a", "b", "c")
MAX_DELIVERIES = 5
SLOTS = 4
ROOM = 4


def open_transport(database: Path) -> SQLiteTransport:
    # Tokens come from the machine's randomness: a restarted process must not repeat them.
    transport = SQLiteTransport(
        database, Settings(lease=LEASE), clock=SystemClock(), random=Random()
    )
    transport.open()
    return transport


def produce(database: Path, log: Log, number: int, random: Random, count: int) -> None:
    transport = open_transport(database)
    done = 0
    pause = threading.Event()
    while done < count:
        now = time.time()
        batch = [message(f"p{number}-{done + i}", now, random) for i in range(random.randint(1, 5))]
        done += len(batch)
        for m in batch:
            eta = None if m.eta is None else to_monotonic(m.eta)
            about = {"task": m.task, "priority": m.priority, "eta": eta, "expires": None}
            log.write("submit", id=m.task_id, **about)
        transport.submit(batch)
        for m in batch:
            log.write("accepted", id=m.task_id)
        # Not transport.wait: every commit of a consumer would end the pause.
        pause.wait(random.uniform(0, 0.06))
    transport.close()


def message(name: str, now: float, random: Random) -> Message:
    eta = now + random.uniform(0, 0.5) if random.random() < 0.25 else None
    return Message(
        message_id=name,
        task_id=name,
        task="stress",
        queue=random.choice(QUEUES),
        body=b"[[],{},{}]",
        priority=random.randint(-9, 9),
        eta=eta,
        max_deliveries=MAX_DELIVERIES,
    )


class Consumer:
    """Takes, holds, renews, yields, retries, releases and finishes at random until told to stop."""

    def __init__(self, database: Path, log: Log, name: str, random: Random) -> None:
        self.transport = open_transport(database)
        self.log = log
        self.random = random
        self.name = name
        self.running: dict[int, Delivery] = {}
        self.waiting: dict[int, Delivery] = {}
        self.renewed_at = self.reaped_at = 0.0
        self.shares = tuple(QueueShare(q, w) for q, w in zip(QUEUES, (1, 2, 3), strict=True))

    def run(self, stop: Path) -> None:
        while True:
            self.renew()
            self.reap()
            self.give_back_some()
            got = self.turn()
            if not got:
                held = self.running or self.waiting
                if stop.exists() and not held and not self.transport.operators.depth():
                    break
                self.transport.wait(0.02)
        self.transport.close()

    def turn(self) -> bool:
        outcomes = [self.outcome(d) for d in self.running.values() if self.random.random() < 0.3]
        for o in outcomes:
            self.log.write("end", id=o.delivery.message.task_id, how=o.verb.value)
        request = ReserveRequest(
            worker=self.name,
            queues=self.shares,
            slots=SLOTS - len(self.running) + len(outcomes),
            room=max(0, ROOM - len(self.waiting)),
            lease=LEASE,
            waiting=tuple(self.waiting.values()),
        )
        turn = self.transport.turn(outcomes, request)
        for o in outcomes:
            del self.running[o.delivery.token]
        for refused in turn.refused:
            del self.waiting[refused.token]
        for d in turn.deliveries:
            self.waiting.pop(d.token, None)
            (self.running if d.started else self.waiting)[d.token] = d
            if d.started:
                about = {"supervisor": os.getpid(), "deliveries": d.deliveries}
                self.log.write("start", id=d.message.task_id, **about)
        return bool(turn.deliveries or outcomes)

    def outcome(self, delivery: Delivery) -> Outcome:
        kind = self.random.random()
        if kind < 0.15:
            delay = self.random.choice([0.0, 0.05])
            return Outcome(delivery=delivery, verb=Verb.RETRY, delay=delay)
        if kind < 0.25:
            return Outcome(delivery=delivery, verb=Verb.RELEASE)
        record = ResultRecord(task_id=delivery.message.task_id, state=State.SUCCEEDED)
        return Outcome(delivery=delivery, verb=Verb.FINISH, result=record)

    def give_back_some(self) -> None:
        for token, delivery in list(self.waiting.items()):
            if self.random.random() < 0.3:
                self.transport.yield_reservation(delivery, delay=self.random.uniform(0, 0.05))
                del self.waiting[token]

    def renew(self) -> None:
        now = time.time()
        held = [*self.running.values(), *self.waiting.values()]
        if not held or now - self.renewed_at < LEASE / 4:
            return
        self.renewed_at = now
        for delivery in self.transport.extend(held, LEASE):
            self.running.pop(delivery.token, None)
            self.waiting.pop(delivery.token, None)

    def reap(self) -> None:
        now = time.time()
        if now - self.reaped_at >= LEASE / 3:
            self.reaped_at = now
            self.transport.coordination.reap()


def main(role: str, directory: str, number: str, seed: str, extra: str) -> None:
    home = Path(directory)
    log = Log(home / f"{role}-{number}.jsonl")
    instrument.install(log)
    random = Random(f"{seed}-{role}-{number}")
    if role == "producer":
        produce(home / "stress.db", log, int(number), random, count=int(extra))
    else:
        Consumer(home / "stress.db", log, f"consumer-{number}", random).run(home / extra)


if __name__ == "__main__":
    main(*sys.argv[1:])
