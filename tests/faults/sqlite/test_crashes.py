"""Killed in the middle: what was accepted is there, what was not is not, and the file is whole (I1, I12)."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

from taskmq.transports.sqlite import migrations


def stored(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows = connection.execute("SELECT message_id FROM message").fetchall()
    connection.close()
    return [row[0] for row in rows]


def test_what_a_killed_producer_was_told_is_stored(actor, path: Path) -> None:
    producers = [actor("produce", name) for name in ("a", "b", "c")]
    for producer in producers:
        producer.until_many("accepted", 20)
        producer.kill()

    accepted = [task_id for producer in producers for task_id in producer.said("accepted")]

    assert len(accepted) >= 60
    assert set(accepted) <= set(stored(path))
    # At most the one each was in the middle of.
    assert len(stored(path)) <= len(accepted) + len(producers)


def test_a_migration_that_is_killed_leaves_the_version_before(actor, path: Path) -> None:
    assert actor("die_in_a_migration").process.wait(20) == -9

    connection = sqlite3.connect(path, isolation_level=None)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert len(connection.execute("SELECT * FROM a").description) == 1
    migrations.migrate(connection, str(path), ("CREATE TABLE a(x);", "ALTER TABLE a ADD COLUMN y;"))
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    connection.close()


def test_a_file_moved_under_a_producer_keeps_all_it_took(actor, path: Path) -> None:
    producer = actor("produce", "a")
    producer.until_many("accepted", 20)
    moved = path.with_name("moved.db")
    # Three files cannot be moved at one instant under a process that looks at them.
    os.kill(producer.pid, signal.SIGSTOP)
    for suffix in ("", "-wal", "-shm"):
        os.rename(f"{path}{suffix}", f"{moved}{suffix}")
    os.kill(producer.pid, signal.SIGCONT)
    producer.until("refused")
    before = len(producer.said("accepted"))
    producer.until_many("accepted", before + 20)
    producer.kill()

    accepted = set(producer.said("accepted"))
    new = set(stored(path))

    assert len(producer.said("refused")) == 1
    assert accepted <= set(stored(moved)) | new
    assert len(new) >= 20
