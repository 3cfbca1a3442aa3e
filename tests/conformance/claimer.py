"""One process of the double-claim test: takes what it can get and prints each id it got, as JSON."""

from __future__ import annotations

import json
import sys
from random import Random

from taskmq.clock import SystemClock
from taskmq.message import ResultRecord
from taskmq.states import State
from taskmq.transports.base import Outcome, QueueShare, ReserveRequest, Settings, Verb
from taskmq.transports.sqlite import SQLiteTransport


def main(database: str, number: str) -> None:
    transport = SQLiteTransport(
        database, Settings(), clock=SystemClock(), random=Random(int(number))
    )
    transport.open()
    request = ReserveRequest(worker=f"w{number}", queues=(QueueShare("q"),), slots=3)
    outcomes: list[Outcome] = []
    while True:
        turn = transport.turn(outcomes, request)
        for delivery in turn.deliveries:
            print(json.dumps(delivery.message.task_id))
        if not turn.deliveries and not turn.more:
            break
        outcomes = [
            Outcome(
                delivery=delivery,
                verb=Verb.FINISH,
                result=ResultRecord(task_id=delivery.message.task_id, state=State.SUCCEEDED),
            )
            for delivery in turn.deliveries
        ]
    transport.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
