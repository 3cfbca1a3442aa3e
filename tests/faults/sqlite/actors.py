"""Processes that something happens to: each writes lines to a log of its own that survives its death.

python -m tests.faults.sqlite.actors NAME DATABASE [ARGUMENT ...]
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from taskmq.errors import TransportCorrupt, TransportMoved
from taskmq.message import Message
from taskmq.transports.base import Outcome, QueueShare, ReserveRequest, Verb
from taskmq.transports.sqlite import SQLiteTransport, migrations
from taskmq.transports.sqlite.options import SQLiteOptions

QUEUES = (QueueShare("q"),)
FOREVER = 60.0


def say(line: str) -> None:
    """One line in one write: nothing of it is lost when the process is killed."""
    os.write(1, f"{line}\n".encode())


def message(name: str, **fields: Any) -> Message:
    values: dict[str, Any] = {"task_id": name, "body": b"[[], {}, {}]", **fields}
    return Message(message_id=name, task="t", queue="q", **values)


def opened(path: str) -> SQLiteTransport:
    transport = SQLiteTransport(path)
    transport.open()
    return transport


def hold(path: str) -> None:
    """Stay inside a write transaction that has stored one message."""
    transport = opened(path)

    def stay(connection) -> None:
        connection.execute("INSERT INTO queue(name) VALUES ('half')")
        say("inside")
        time.sleep(FOREVER)

    transport._store.write(stay)


def hold_and_fork(path: str) -> None:
    """The same, with a forked child that lives on."""
    transport = opened(path)

    def stay(_) -> None:
        pid = os.fork()
        if pid == 0:
            say(f"child {os.getpid()}")
            time.sleep(FOREVER)
            os._exit(0)
        say("inside")
        time.sleep(FOREVER)

    transport._store.write(stay)


def hold_until_told(path: str) -> None:
    """Hold the write lock until SIGUSR1."""
    transport = opened(path)
    told = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: told.set())

    def stay(_) -> None:
        say("inside")
        told.wait(FOREVER)

    transport._store.write(stay)


def produce(path: str, name: str, count: str = "1000000") -> None:
    """Submit one message after another and log each that was accepted."""
    transport = opened(path)
    for number in range(int(count)):
        task_id = f"{name}-{number}"
        try:
            transport.submit([message(task_id)])
        except TransportMoved:
            say(f"refused {task_id}")
        else:
            say(f"accepted {task_id}")
    transport.close()
    say("done")


def produce_durably(path: str) -> None:
    """Submit one message after another, each on the disk before it is logged."""
    transport = SQLiteTransport(path, options=SQLiteOptions(durability="full"))
    transport.open()
    number = 0
    while True:
        transport.submit([message(f"durable-{number}")])
        say(f"accepted durable-{number}")
        number += 1


def keep_until_told(path: str, count: str, copied_back: str) -> None:
    """Store some and keep the file open; at SIGUSR1 store one more, close, and try to begin anew."""
    transport = opened(path)
    told = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: told.set())
    for number in range(int(count)):
        transport.submit([message(f"kept-{number}")])
    if int(copied_back):
        transport.coordination.checkpoint()
    say("stored")
    told.wait(FOREVER)
    try:
        transport.submit([message("refused")])
    except TransportCorrupt:
        say("refused TransportCorrupt")
    transport.close()
    try:
        opened(path)
    except TransportCorrupt:
        say("anew TransportCorrupt")


def consume(path: str, name: str, count: str) -> None:
    """Reserve and finish until `count` messages are gone; log each."""
    transport = opened(path)
    request = ReserveRequest(worker=name, queues=QUEUES, slots=4)
    outcomes: list[Outcome] = []
    finished = 0
    while finished < int(count):
        turn = transport.turn(outcomes, request)
        finished += len(outcomes)
        outcomes = [Outcome(delivery=d, verb=Verb.FINISH) for d in turn.deliveries]
        for delivery in turn.deliveries:
            say(f"took {delivery.message.task_id}")
        if not outcomes and not turn.more:
            transport.wait(0.05)
            if transport.results.get("stop") is not None:
                break
    transport.close()
    say("done")


def die_in_a_migration(path: str) -> None:
    """Be killed in the middle of the second step of a migration."""
    import sqlite3

    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
    steps = ("CREATE TABLE a(x);\n", "ALTER TABLE a ADD COLUMN y;\nSELECT die();\n")
    migrations.migrate(connection, path, steps)


#: What a version to come might add.
NEXT_STEP = "ALTER TABLE message ADD COLUMN colour TEXT;\nUPDATE message SET colour = 'red';\n"


def open_as_the_next_version(path: str) -> None:
    """Open a file as a version would whose schema is one step further."""
    steps = (*migrations.scripts(), NEXT_STEP)
    migrations.scripts = lambda: steps  # type: ignore[assignment]
    opened(path).close()
    say("done")


ACTORS: dict[str, Callable[..., None]] = {
    call.__name__: call
    for call in (
        hold,
        hold_and_fork,
        hold_until_told,
        produce,
        produce_durably,
        keep_until_told,
        consume,
        die_in_a_migration,
        open_as_the_next_version,
    )
}

ROOT = Path(__file__).resolve().parents[3]

if __name__ == "__main__":
    from tests.faults.sqlite import forkers

    {**ACTORS, **forkers.ACTORS}[sys.argv[1]](*sys.argv[2:])
