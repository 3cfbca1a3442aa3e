"""Databases as earlier versions left them, as SQL: `schemas/version_N.sql`, one per version of the schema.

A file of a version that was released is never changed. One for the newest version is made by

    python -m tests.faults.sqlite.older
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path
from random import Random

from taskmq.clock import FakeClock
from taskmq.message import ConcurrencyKey, Rate, ResultRecord
from taskmq.policy.following import Consequence
from taskmq.states import State
from taskmq.transports.base import Outcome, QueueShare, ReserveRequest, Settings, Verb
from taskmq.transports.sqlite import SQLiteTransport, migrations
from tests.faults.sqlite.actors import message

SCHEMAS = Path(__file__).parent / "schemas"
NEWEST = len(migrations.scripts())
#: When the files were left.
LEFT_AT = 1_700_000_000.0
LEASE = 30.0
SETTINGS = Settings(lease=LEASE, result_expires=None, dead_letter_expires=None)
KEY = ConcurrencyKey("account 1", 1)


def file_of(version: int) -> Path:
    return SCHEMAS / f"version_{version}.sql"


def load(version: int, path: Path) -> None:
    """Make the database that this version left."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.executescript(file_of(version).read_text(encoding="utf-8"))
    connection.close()


def opened(path: Path, clock: FakeClock | None = None) -> SQLiteTransport:
    transport = SQLiteTransport(path, SETTINGS, clock=clock or FakeClock(LEFT_AT), random=Random(1))
    transport.open()
    return transport


def request(slots: int = 100) -> ReserveRequest:
    return ReserveRequest(worker="w", queues=(QueueShare("q"),), slots=slots, lease=LEASE)


def leave(path: Path) -> None:
    """Have something in every state, and close."""
    transport = opened(path)
    dead = message("dead", retries=2)
    transport.submit([message("running"), message("succeeded"), dead])
    running, succeeded, died = transport.turn((), request(3)).deliveries
    transport.settle(
        [
            Outcome(
                delivery=succeeded,
                verb=Verb.FINISH,
                result=ResultRecord(
                    task_id="succeeded", state=State.SUCCEEDED, body=b"42", ended_at=LEFT_AT
                ),
                then=Consequence(),
            ),
            Outcome(delivery=died, verb=Verb.BURY, reason="failed", error="ValueError: no"),
        ]
    )
    assert running.message.task_id == "running"
    transport.submit(
        [
            message("low", priority=-9),
            message("urgent", priority=9, headers={"from": "before"}),
            message("other id", task_id="shared"),
            message("first of its key", concurrency=KEY),
            message("blocked", concurrency=KEY),
            message("scheduled", eta=LEFT_AT + 60),
            message("expiring", expires_at=LEFT_AT + 30, eta=LEFT_AT + 3600),
            message("limited", rate=Rate("mail", 10.0)),
        ]
    )
    transport.operators.revoke(["revoked"], reason="not wanted")
    transport.operators.pause("paused")
    transport.close()


def write() -> None:
    """Write the file of the newest version."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queue.db"
        leave(path)
        connection = sqlite3.connect(path)
        lines = [
            line
            for line in connection.iterdump()
            if "sqlite_sequence" not in line or line.startswith("INSERT")
        ]
        owner = connection.execute("PRAGMA application_id").fetchone()[0]
        connection.close()
    lines[-1:-1] = [f"PRAGMA application_id={owner};", f"PRAGMA user_version={NEWEST};"]
    SCHEMAS.mkdir(exist_ok=True)
    file_of(NEWEST).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
