"""From one version of the file to the next, by `user_version`; each step is one transaction.

A process killed in between leaves the last complete version, and the next open goes on from there. A file
newer than the code is refused and left as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from taskmq.errors import TransportCorrupt, TransportError
from taskmq.failpoints import Failpoint, failpoint

# "TMQ1" in the file's header: tells our files from the user's other SQLite databases.
APPLICATION_ID = 0x544D5131


@cache
def scripts() -> tuple[str, ...]:
    """The SQL that leads to version 1, 2, … in order."""
    return ((files(__package__) / "schema.sql").read_text(encoding="utf-8"),)


def check(connection: sqlite3.Connection, path: str, newest: int) -> int:
    """The version of a file that is new (0) or ours. Reads only.

    Raises `TransportCorrupt` for a database of something else and `TransportError` for a newer one.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner != APPLICATION_ID and (owner or version or tables):
        raise TransportCorrupt(
            f"{path} is an SQLite database, but not one of TaskMQ's; it was not changed. "
            "Give the messages a file of their own"
        )
    if version > newest:
        raise TransportError(
            f"{path} has schema version {version}, this TaskMQ knows up to {newest}; "
            "upgrade TaskMQ in every process that uses the file"
        )
    return version


def migrate(connection: sqlite3.Connection, path: str, steps: Sequence[str] | None = None) -> None:
    """Bring the file to the newest version. The caller holds the write lock."""
    steps = scripts() if steps is None else steps
    version = check(connection, path, len(steps))
    for number, script in enumerate(steps[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Not executescript(): that would commit before it starts.
            for statement in statements(script):
                connection.execute(statement)
            failpoint(Failpoint.IN_MIGRATION)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def statements(script: str) -> list[str]:
    """The statements of a script, one by one."""
    found = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found
