"""Thousands of messages fall due in one second (row 40): in batches, and what is urgent passes (I6, I7)."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from taskmq.clock import FakeClock
from taskmq.message import ResultRecord
from taskmq.states import State
from taskmq.transports.base import Outcome, ReserveRequest, Verb
from taskmq.transports.sqlite import SQLiteTransport
from taskmq.transports.sqlite.due import PROMOTED_PER_TURN
from tests.faults.sqlite.actors import QUEUES, message
from tests.support.waiting import wait_until

STORM = 5000


def test_a_storm_is_moved_in_batches_while_claims_go_on_and_the_urgent_pass(path: Path) -> None:
    clock = FakeClock()
    transport = SQLiteTransport(path, clock=clock)
    transport.open()
    due = clock.now() + 1
    transport.submit([message(f"m{n}", eta=due) for n in range(STORM)])
    clock.advance(0.999)
    request = ReserveRequest(worker="w", queues=QUEUES, slots=2)
    assert transport.turn((), request).deliveries == ()
    clock.advance(0.001)
    watcher = sqlite3.connect(path, isolation_level=None)

    outcomes: list[Outcome] = []
    taken: list[str] = []
    left = STORM
    turns = 0
    while True:
        if turns == 3:
            transport.submit([message("urgent", priority=9)])
        turn = transport.turn(outcomes, request)
        names = [d.message.message_id for d in turn.deliveries]
        if turns == 3:
            assert names[0] == "urgent"
        taken += names
        now_left = watcher.execute("SELECT count(*) FROM scheduled").fetchone()[0]
        assert left - now_left <= PROMOTED_PER_TURN
        # No turn is spent on moving alone.
        assert names or not turn.more
        left = now_left
        outcomes = [Outcome(delivery=d, verb=Verb.FINISH) for d in turn.deliveries]
        turns += 1
        if not names and not turn.more:
            break
    watcher.close()
    transport.close()

    assert PROMOTED_PER_TURN <= 500
    assert sorted(taken) == sorted(["urgent", *(f"m{n}" for n in range(STORM))])


def test_idle_workers_share_a_storm_without_taking_anything_twice(
    actor, transport: SQLiteTransport
) -> None:
    consumers = [actor("consume", f"w{n}", 10_000) for n in range(2)]
    transport.submit([message("first")])
    wait_until(lambda: any(consumer.said("took") for consumer in consumers), 20)
    due = time.time() + 1
    transport.submit([message(f"m{n}", eta=due) for n in range(2000)])
    wait_until(lambda: transport.operators.depth() == [], 40)
    transport.results.put([ResultRecord(task_id="stop", state=State.SUCCEEDED)])
    for consumer in consumers:
        consumer.until("done", 20)

    taken = [task_id for consumer in consumers for task_id in consumer.said("took")]

    assert sorted(taken) == sorted(["first", *(f"m{n}" for n in range(2000))])
