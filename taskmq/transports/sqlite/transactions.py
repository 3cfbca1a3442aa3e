"""Transactions inside the file lock, which end whole whatever interrupts the thread.

An interrupt (Ctrl-C, a handler of SIGALRM) may be raised after any call. So what is taken is taken inside the
`try` that gives it up, giving up what is not held changes nothing, and it is done in two nested `finally`s:
the second one survives an interrupt of the first. What even that left behind, the next one cleans up.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from taskmq.errors import SubmitUnknown, TransportError
from taskmq.transports.sqlite import faults
from taskmq.transports.sqlite.group import Piece
from taskmq.transports.sqlite.lock import FileLock

T = TypeVar("T")


class Transactions:
    """Those of one store. Used only under its mutex."""

    def __init__(
        self,
        path: str,
        lock: FileLock,
        *,
        writer: Callable[[], sqlite3.Connection | None],
        on_rollback: Callable[[], None],
    ) -> None:
        """`writer` gives the connection of this process if there is one."""
        self._path = path
        self._lock = lock
        self._writer = writer
        self._on_rollback = on_rollback
        # Commits of this process so far.
        self.commits = 0
        self._mine = threading.local()
        # Whether a transaction may be open, and whether each commit waits for the disk.
        self._begun = False
        self._full = False

    def of_others(self) -> int:
        """A number that changes with every commit of another thread of this process."""
        mine: int = getattr(self._mine, "commits", 0)
        return self.commits - mine

    def locked(self, work: Callable[[], T]) -> T:
        """Do `work` inside the file lock; a transaction that it leaves open is taken back."""
        try:
            try:
                if self._begun or self._full:
                    self._clean_up()
                self._lock.acquire()
                return work()
            finally:
                self._leave()
        finally:
            # Looked at without a call: nearly always nothing is left.
            if self._begun or self._full or self._lock.maybe_held:
                self._leave()

    def run(
        self,
        connection: sqlite3.Connection,
        group: list[Piece[Any]],
        *,
        durable: bool,
        check: Callable[[], None],
    ) -> None:
        """Run pieces in one transaction, if `check` inside the lock lets it; says of each that it is done.

        Raises what a piece or SQLite raises, with nothing changed, and `SubmitUnknown`.
        """
        self.locked(lambda: self._run(connection, group, durable, check))

    def _run(
        self,
        connection: sqlite3.Connection,
        group: list[Piece[Any]],
        durable: bool,
        check: Callable[[], None],
    ) -> None:
        check()
        if durable:
            self._full = True
            connection.execute("PRAGMA synchronous=FULL")
        self._begun = True
        committing = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            for piece in group:
                piece.run(connection)
            if self._writer() is not connection:
                raise TransportError(f"a child was forked inside a transaction on {self._path}")
            # Before the commit: one that nobody counts would be slept over, while a failed one that is
            # counted costs a look.
            self._mine.commits = getattr(self._mine, "commits", 0) + 1
            self.commits += 1
            committing = True
            connection.execute("COMMIT")
            self._begun = False
            _say_done(group)
        except BaseException as exc:
            if committing and not isinstance(exc, sqlite3.Error) and not connection.in_transaction:
                # An interrupt that came after the commit: all of it is stored.
                self._begun = False
                _say_done(group)
            elif committing and faults.is_io(exc):
                raise SubmitUnknown(
                    f"the commit to {self._path} broke off ({exc}); it may or may not be stored"
                ) from exc
            raise

    def _leave(self) -> None:
        try:
            if self._begun or self._full:
                self._clean_up()
        finally:
            self._lock.release()

    def _clean_up(self) -> None:
        """Take back a transaction that did not end, and stop waiting for the disk."""
        if self._begun:
            self._on_rollback()
            # None when the file was replaced, and in a child forked inside: it is the parent's there.
            writer = self._writer()
            if writer is not None:
                roll_back(writer)
            self._begun = False
        if self._full:
            writer = self._writer()
            if writer is not None:
                writer.execute("PRAGMA synchronous=NORMAL")
            self._full = False


def roll_back(connection: sqlite3.Connection) -> None:
    """Roll back what is open on a connection, if anything is."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _say_done(group: list[Piece[Any]]) -> None:
    for piece in group:
        piece.done = True
