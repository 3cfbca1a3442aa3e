"""The one way to the file: connections of this process, and every write inside the file lock.

A write is: the mutex of this process, the file lock, is it still our file, BEGIN IMMEDIATE, the work,
COMMIT with the checkpoint it may bring, unlock.

An interrupt (Ctrl-C, a handler of SIGALRM) may be raised after any call in here: see `transactions`.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from taskmq.errors import TransportCorrupt, TransportError, TransportMoved, TransportUnavailable
from taskmq.transports.sqlite import faults, files, forks
from taskmq.transports.sqlite.connect import connect_reader, connect_writer
from taskmq.transports.sqlite.files import Identity
from taskmq.transports.sqlite.group import GroupCommit, Piece, Work
from taskmq.transports.sqlite.guard import Guard
from taskmq.transports.sqlite.lock import FileLock
from taskmq.transports.sqlite.options import SQLiteOptions
from taskmq.transports.sqlite.room import Room
from taskmq.transports.sqlite.section import Section
from taskmq.transports.sqlite.transactions import Transactions, roll_back

log = logging.getLogger("taskmq.sqlite")

T = TypeVar("T")

# Databases whose log or memory was deleted while this process had them open: SQLite shares both among all
# connections of a process, so that new ones would be on the old ones.
_GIVEN_UP: set[Identity] = set()

# What a value that cannot be bound raises; it concerns one message, never the file.
UNSTORABLE = (UnicodeEncodeError, OverflowError, sqlite3.DataError)
# How long a fork waits for other threads to leave SQLite; a transaction takes a few milliseconds.
_FORK_PATIENCE = 1.0


class Store:
    """The file of one transport in this process. Thread-safe; a forked child opens its own."""

    def __init__(self, path: Path, options: SQLiteOptions, random: Random) -> None:
        self.path = str(path)
        self.options = options
        #: Whether `open` found no file and made one.
        self.created = False
        #: Called when a transaction did not commit: what was cached inside it is void.
        self.on_rollback: Callable[[], None] = lambda: None
        #: Called when another file is opened: everything cached is void.
        self.on_reopen: Callable[[], None] = lambda: None
        self._file = path
        self._lock = FileLock(
            f"{path}.lock", mode=options.mode, timeout=options.busy_timeout, random=random
        )
        self._guard = Guard(self.path, self._lock)
        self._room = Room(self.path)
        self._opened = False
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._reads: Identity | None = None
        # Whether the writer is on a log or a memory that is no longer the database's: it is never closed.
        self._void = False
        # Of a forked child: whether connections of its parent are kept, and of which file it must keep away.
        self._inherited = False
        self._lost: Identity | None = None
        self._fresh()
        forks.around(before=self._pause, in_parent=self._go_on, in_child=self._abandon)

    def _fresh(self) -> None:
        self._mutex = Section(self.path)
        self._reading = Section(self.path)
        self._group = GroupCommit(
            self._mutex, self._commit_durably, apart=faults.is_full, fault=self._fault
        )
        self._transactions = Transactions(
            self.path,
            self._lock,
            writer=lambda: self._writer,
            on_rollback=lambda: self.on_rollback(),
        )
        self._paused: dict[int, list[Section]] = {}

    def _pause(self) -> None:
        """Before a fork: let every thread leave SQLite.

        SQLite has locks of its own; a child forked while another thread holds one of them would wait for it
        for ever, and with our file lock in its hand. Bounded, for the forking thread may itself be inside.
        """
        held = self._paused.setdefault(threading.get_ident(), [])
        for section in (self._reading, self._mutex):
            if section.block(_FORK_PATIENCE):
                held.append(section)

    def _go_on(self) -> None:
        for section in self._paused.pop(threading.get_ident(), ()):
            section.unblock()

    def _abandon(self) -> None:
        # In a forked child. Another thread of the parent may have held any of the locks.
        for connection in (self._writer, self._reader):
            if connection is not None:
                forks.leak(connection)
                self._inherited = True
        self._writer = self._reader = None
        if self._inherited and not self._take_over():
            self._lost = self._guard.database
        self._lock.abandon()
        self._fresh()
        self.on_reopen()

    def _take_over(self) -> bool:
        # The locks first: only under them can nobody remove what is looked at.
        try:
            return forks.take_over(self.path) and self._guard.intact()
        except TransportUnavailable:
            return False

    # -- life -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, creating the file if there is none; idempotent."""
        self._mutex.run(self._open_once)

    def _open_once(self) -> None:
        if not self._opened:
            self._connect()
            self._opened = True

    def close(self) -> None:
        """Let go of the file; idempotent. The last process to close it empties the log into it."""
        self._reading.run(lambda: self._mutex.run(self._close))

    def _close(self) -> None:
        self._opened = False
        try:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
            if self._writer is not None:
                try:
                    self._lock.acquire()
                    if self._guard.lost():
                        self._give_up()
                except TransportUnavailable:
                    pass  # somebody is stopped inside it; SQLite's own locks decide then
                self._let_go()
        finally:
            try:
                self._lock.close()
            finally:
                self._lock.close()

    def _connect(self) -> sqlite3.Connection:
        files.check_place(self._file, self.options)
        self._keep_away_from_lost()
        before = self._guard.database
        writer = self._transactions.locked(self._connect_locked)
        if before not in (None, self._guard.database):
            log.warning(
                "%s is another file than before; going on with this one",
                self.path,
                extra={"action": "reopen"},
            )
        self.on_reopen()
        self._writer = writer
        return writer

    def _connect_locked(self) -> sqlite3.Connection:
        self._guard.hold()
        made = files.create(self._file, self.options.mode)
        self.created = self.created or made
        writer = connect_writer(self.path, self.options)
        # Read once, so that the log exists and can be recognised.
        writer.execute("SELECT version FROM catalog").fetchall()
        self._guard.learn()
        self._void = False
        self._room.opened()
        return writer

    def _let_go(self) -> None:
        # The reader may be in use by another thread; it finds out by itself.
        if self._writer is not None:
            if not self._void:
                self._writer.close()
            self._writer = None

    def _give_up(self) -> None:
        """The log or the memory was deleted: save what is in ours while nobody has begun another.

        The connection is not closed then, nor collected: the last one to close copies its log back, and over
        what others have stored since (measured: a malformed file).
        """
        if self._writer is None or self._void:
            return
        forks.leak(self._writer)
        self._void = True
        if self._guard.database is not None:
            _GIVEN_UP.add(self._guard.database)
        if not self._guard.begun_anew():
            try:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except sqlite3.Error:
                log.exception("the log of %s could not be copied back", self.path)

    # -- reading ----------------------------------------------------------------------------------

    def read(self, work: Work[T]) -> T:
        """Run reads on a connection of their own: a writer or a waiting lock never holds them up."""
        return self._reading.run(lambda: self._read(work))

    def _read(self, work: Work[T]) -> T:
        connection = self._reader
        if connection is None or files.identity(self.path) != self._reads:
            connection = self._open_reader()
        lost = self._guard.lost()
        if lost is not None:
            raise TransportCorrupt(f"{lost} was deleted or replaced while {self.path} was open")
        try:
            try:
                # Left by one that was interrupted twice.
                roll_back(connection)
                return work(connection)
            except (sqlite3.Error, *UNSTORABLE) as exc:
                raise faults.translate(exc, self.path) from exc
            finally:
                roll_back(connection)
        finally:
            roll_back(connection)

    def _open_reader(self) -> sqlite3.Connection:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        found = files.identity(self.path)
        if self._writer is None or found != self._guard.database:
            self._mutex.run(lambda: self._reopen(found))
        reader = connect_reader(self.path, self.options)
        self._reads = files.identity(self.path)
        self._reader = reader
        return reader

    def _reopen(self, found: Identity | None) -> None:
        self._need_open()
        if found != self._guard.database:
            self._let_go()
        self._ready()

    def glance(self, work: Work[T]) -> T:
        """Run a few quick reads on the writing connection, whose page cache is warm; no file lock.

        Raises `TransportMoved` as a write would.
        """
        return self._mutex.run(lambda: self._glance(work))

    def _glance(self, work: Work[T]) -> T:
        connection = self._ready()
        self._check_file(locked=False)
        try:
            return work(connection)
        except BaseException as exc:
            # It may have been interrupted while it filled a cache.
            self.on_rollback()
            if isinstance(exc, (sqlite3.Error, *UNSTORABLE)):
                raise faults.translate(exc, self.path) from exc
            raise

    def commits(self) -> int:
        """How many commits this process has made here."""
        return self._transactions.commits

    def news(self) -> tuple[int, int]:
        """A value that changes with every commit that was not made by the calling thread."""
        return self._mutex.run(self._news)

    def _news(self) -> tuple[int, int]:
        version = self._ready().execute("PRAGMA data_version").fetchone()[0]
        return version, self._transactions.of_others()

    # -- writing ----------------------------------------------------------------------------------

    def write(self, work: Work[T], *, room: bool = False) -> T:
        """Run `work` in one transaction.

        With `room` a full device is met by copying the log back and one more try: then what settles
        reuses the log's own space (measured: all of them pass on a full disk). Raises `TransportError`s
        with nothing changed, and what `work` raises.
        """
        return self._mutex.run(lambda: self._write(work, room))

    def _write(self, work: Work[T], room: bool) -> T:
        piece = Piece(work)
        self._room.look(self._ready())
        try:
            self._transaction([piece], durable=False)
        except (sqlite3.Error, *UNSTORABLE) as exc:
            if not (room and faults.is_full(exc)):
                raise faults.translate(exc, self.path) from exc
            self._make_room(exc)
            piece = Piece(work)
            try:
                self._transaction([piece], durable=False)
            except sqlite3.Error as again:
                raise faults.translate(again, self.path) from again
        return piece.outcome()

    def submit(self, work: Work[T]) -> T:
        """As `write` for producers: together with those of other threads, durable if so configured.

        Each caller gets its own error. Raises `SubmitUnknown` when the commit itself broke off.
        """
        return self._group.submit(work)

    def _commit_durably(self, group: list[Piece[Any]]) -> None:
        connection = self._ready()
        self._room.look(connection)
        self._room.need(connection)
        self._transaction(group, durable=self.options.durability == "full")

    def _transaction(self, group: list[Piece[Any]], *, durable: bool) -> None:
        connection = self._ready()
        self._transactions.run(connection, group, durable=durable, check=self._check_file)

    def _fault(self, exc: BaseException) -> BaseException:
        if isinstance(exc, (sqlite3.Error, *UNSTORABLE)):
            fault = faults.translate(exc, self.path)
            fault.__cause__ = exc
            return fault
        return exc

    def _make_room(self, cause: BaseException) -> None:
        try:
            self._checkpoint()
        except sqlite3.Error as exc:
            raise faults.translate(cause, self.path) from exc

    def checkpoint(self) -> tuple[int, int]:
        """Copy the log back into the file as far as readers allow; (pages in the log, copied)."""
        return self._mutex.run(self._checkpoint_or_say)

    def _checkpoint_or_say(self) -> tuple[int, int]:
        try:
            return self._checkpoint()
        except sqlite3.Error as exc:
            raise faults.translate(exc, self.path) from exc

    def _checkpoint(self) -> tuple[int, int]:
        connection = self._ready()
        row = self._transactions.locked(lambda: self._copy_back(connection))
        return int(row[1]), int(row[2])

    def _copy_back(self, connection: sqlite3.Connection) -> tuple[int, int, int]:
        self._check_file()
        # PASSIVE, never TRUNCATE: a log that was cut off has to grow again, which a full disk forbids.
        row: tuple[int, int, int] = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return row

    # -- guards -----------------------------------------------------------------------------------

    def _need_open(self) -> None:
        if not self._opened:
            raise TransportError(f"the transport of {self.path} is not open")

    def _keep_away_from_lost(self) -> None:
        found = files.identity(self.path)
        if found in _GIVEN_UP:
            raise TransportCorrupt(
                f"the log or the memory of {self.path} was deleted while this process had it open; "
                "start it anew"
            )
        if self._lost is not None and found == self._lost:
            raise TransportError(
                f"{self.path} was closed by every other process in the moment this one was forked, and what "
                "was inherited of it is void; start this process anew"
            )

    def _ready(self) -> sqlite3.Connection:
        if self._writer is not None:
            return self._writer
        self._need_open()
        return self._connect()

    def _check_file(self, *, locked: bool = True) -> None:
        """Refuse to write into a file that nobody else can find any more (measured: SQLite would)."""
        try:
            self._guard.check(locked=locked)
        except TransportMoved:
            self._let_go()
            raise
        except TransportCorrupt:
            if locked:
                self._give_up()
            raise
