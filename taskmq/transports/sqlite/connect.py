"""Connections to the file: how they are opened, and what every one of them is set to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from urllib.parse import quote

from taskmq.errors import TransportUnavailable
from taskmq.transports.sqlite import migrations
from taskmq.transports.sqlite.faults import translate
from taskmq.transports.sqlite.options import SQLiteOptions

# Measured: smaller ones cost rate, larger ones a longer stall at each checkpoint (8-40 ms of fsync).
CHECKPOINT_PAGES = 2000

_SETTINGS = (
    # NORMAL loses nothing when a process dies; only a power cut can take the last commits.
    "PRAGMA synchronous=NORMAL",
    f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}",
    f"PRAGMA journal_size_limit={64 * 1024 * 1024}",
    "PRAGMA cache_size=-16000",
    "PRAGMA temp_store=MEMORY",
    # Debian builds overwrite deleted content by default, which a queue does all the time.
    "PRAGMA secure_delete=OFF",
    # No trigger or view that somebody put into the file runs with our rights.
    "PRAGMA trusted_schema=OFF",
    # A mapping turns a truncated file into SIGBUS and gains nothing (measured).
    "PRAGMA mmap_size=0",
)


class _Connection(sqlite3.Connection):
    """Closed when nobody refers to it any more, as before Python 3.13, which complains instead.

    A program need not close its app before it ends, and an interrupt may lose a connection just made.
    """

    def __del__(self) -> None:
        try:
            self.close()
        except sqlite3.Error:
            pass  # it was never opened


def connect_writer(path: str, options: SQLiteOptions) -> sqlite3.Connection:
    """A connection to an existing file of ours, for which the caller holds the write lock.

    Creates the tables of a new, empty file and brings an older one up to date. Raises the errors of
    `migrations.check`, and `TransportError`s.
    """
    return _set_up(path, options, _prepare)


def connect_reader(path: str, options: SQLiteOptions) -> sqlite3.Connection:
    """A connection that only reads, for a file that a writer of this process has open: needs no lock."""
    return _set_up(path, options, _only_read)


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    # Looked at before anything is set: journal_mode would change a file that is not ours.
    if migrations.check(connection, path, len(migrations.scripts())) == 0:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise TransportUnavailable(
            f"{path} cannot be put into write-ahead mode (it stays in {mode!r}); "
            "is the file system read-only or without shared memory?"
        )
    migrations.migrate(connection, path)


def _only_read(connection: sqlite3.Connection, path: str) -> None:
    newest = len(migrations.scripts())
    version = migrations.check(connection, path, newest)
    if version != newest:
        raise TransportUnavailable(
            f"{path} has schema version {version} still, {newest} is on its way"
        )
    connection.execute("PRAGMA query_only=ON").fetchall()


def _set_up(
    path: str, options: SQLiteOptions, first: Callable[[sqlite3.Connection, str], None]
) -> sqlite3.Connection:
    # mode=rw never creates the file: by then it would have somebody else's permissions.
    try:
        connection = sqlite3.connect(
            f"file:{quote(path)}?mode=rw",
            uri=True,
            isolation_level=None,
            timeout=options.busy_timeout,
            check_same_thread=False,
            factory=_Connection,
            # Preparing anew costs 2.5 times the claim (measured); there are some 100 statements.
            cached_statements=256,
        )
    except sqlite3.Error as exc:
        raise translate(exc, path) from exc
    connection.text_factory = _text
    try:
        first(connection, path)
        for statement in _SETTINGS:
            connection.execute(statement).fetchall()
    except BaseException as exc:
        connection.close()
        if isinstance(exc, sqlite3.Error):
            raise translate(exc, path) from exc
        raise
    return connection


def _text(value: bytes) -> str | bytes:
    """A text; bytes that are none stay bytes, for one such cell would end the reading of all rows."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def has_wal_reset_bug(version: tuple[int, int, int] | None = None) -> bool:
    """Whether this SQLite can corrupt a database when two connections checkpoint at one instant.

    3.7.0 to 3.51.2, but for the backports 3.44.6 and 3.50.7. TaskMQ's own processes are safe, because
    their checkpoints are inside the write lock; the sqlite3 shell or Litestream beside them are not.
    """
    found = sqlite3.sqlite_version_info if version is None else version
    if not (3, 7, 0) <= found <= (3, 51, 2):
        return False
    return not ((3, 44, 6) <= found < (3, 45) or (3, 50, 7) <= found < (3, 51))


def affected_version() -> str | None:
    """That this SQLite has the bug, and what keeps clear of it; None where it does not."""
    if not has_wal_reset_bug():
        return None
    return f"SQLite {sqlite3.sqlite_version} has the WAL-reset bug: let no other program write to this file"
