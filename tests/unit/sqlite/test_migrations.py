"""From one version of the file to the next: all of it or none, and never downwards."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from taskmq.errors import TransportCorrupt, TransportError
from taskmq.transports.sqlite import SQLiteTransport, migrations

FIRST = "CREATE TABLE a(x INTEGER);\nINSERT INTO a VALUES (1);\n"
SECOND = "ALTER TABLE a ADD COLUMN y INTEGER;\nUPDATE a SET y = x + 1;\n"


@pytest.fixture
def connection(path: Path):
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


def version(connection: sqlite3.Connection):
    return connection.execute("PRAGMA user_version").fetchone()[0]


def test_a_new_file_goes_through_every_step(connection: sqlite3.Connection) -> None:
    migrations.migrate(connection, "q.db", (FIRST, SECOND))

    assert version(connection) == 2
    assert connection.execute("SELECT x, y FROM a").fetchall() == [(1, 2)]


def test_an_older_file_keeps_its_rows(connection: sqlite3.Connection) -> None:
    migrations.migrate(connection, "q.db", (FIRST,))
    connection.execute("INSERT INTO a VALUES (10)")

    migrations.migrate(connection, "q.db", (FIRST, SECOND))

    assert connection.execute("SELECT x, y FROM a").fetchall() == [(1, 2), (10, 11)]


def test_the_newest_file_is_left_alone(connection: sqlite3.Connection) -> None:
    migrations.migrate(connection, "q.db", (FIRST, SECOND))
    before = connection.total_changes

    migrations.migrate(connection, "q.db", (FIRST, SECOND))

    assert connection.total_changes == before


def test_a_step_that_fails_half_way_leaves_the_version_before(
    connection: sqlite3.Connection,
) -> None:
    broken = "CREATE TABLE b(x INTEGER);\nINSERT INTO nowhere VALUES (1);\n"

    with pytest.raises(sqlite3.OperationalError):
        migrations.migrate(connection, "q.db", (FIRST, broken))

    assert version(connection) == 1
    tables = connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    assert tables == [("a",)]
    migrations.migrate(connection, "q.db", (FIRST, SECOND))
    assert version(connection) == 2


def test_a_file_newer_than_the_code_is_refused_naming_both(path: Path, transport) -> None:
    transport.close()
    newest = len(migrations.scripts())
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version={newest + 1}")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(TransportError, match=rf"version {newest + 1}.*up to {newest}"):
        SQLiteTransport(path).open()
    assert path.read_bytes() == before


def test_another_programs_database_is_refused_and_not_changed(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE auth_user(id INTEGER PRIMARY KEY)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(TransportCorrupt, match="not one of TaskMQ's"):
        SQLiteTransport(path).open()
    assert path.read_bytes() == before


@pytest.mark.parametrize("junk", [b"x", b"not a database, but quite long" * 1000])
def test_a_file_that_is_no_database_is_refused_and_not_changed(path: Path, junk: bytes) -> None:
    path.write_bytes(junk)

    with pytest.raises(TransportCorrupt, match="not a database"):
        SQLiteTransport(path).open()
    assert path.read_bytes() == junk


def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.touch()
    transport = SQLiteTransport(path)

    transport.open()

    assert transport.operators.queues() == []
    assert not transport.created
    transport.close()


def test_a_comment_does_not_end_a_statement() -> None:
    script = "-- one; two\nCREATE TABLE a(x); -- three;\n\nINSERT INTO a VALUES (';');\n"

    found = [text.strip().splitlines()[-1] for text in migrations.statements(script)]

    assert found == ["CREATE TABLE a(x); -- three;", "INSERT INTO a VALUES (';');"]
