"""Whether the files that are open are still the ones their names lead to: the database, its log, its memory.

Measured: SQLite goes on writing into a file that was deleted or moved, and says nothing (reliability fact 1).
And who opens the database anew after its log or its memory was deleted shares neither with the others.

So it is looked at before everything that is written. A look costs one `stat` of the directory, whose times
change with every name in it; only when they did, or did a moment ago, the files are looked at themselves.
"""

from __future__ import annotations

import logging
import os
import time

from taskmq.errors import TransportCorrupt, TransportMoved
from taskmq.transports.sqlite.files import Identity, identity
from taskmq.transports.sqlite.lock import FileLock

log = logging.getLogger("taskmq.sqlite")

# Times of a file system go in steps of the kernel's tick, at most 10 ms: a change within the step of the
# last one leaves them as they are.
_SETTLED = 0.1
_SECOND = 1_000_000_000


class Guard:
    """What one store has open. Used under its mutex, but for `lost`."""

    def __init__(self, path: str, lock: FileLock) -> None:
        self._path = path
        self._log_path = f"{path}-wal"
        self._memory_path = f"{path}-shm"
        self._directory = os.path.dirname(path) or "."
        self._lock = lock
        #: The database that was opened last; None before.
        self.database: Identity | None = None
        self._log: Identity | None = None
        self._memory: Identity | None = None
        self._unchanged: tuple[int, ...] | None = None

    def learn(self) -> None:
        """The connection just opened is on the files that are there now. The caller holds the lock."""
        self._unchanged = None
        database = identity(self._path)
        self._log = identity(self._log_path)
        self._memory = identity(self._memory_path)
        # Last: a reader asks `lost` without the mutex, and must not take these for another database's.
        self.database = database

    def intact(self) -> bool:
        """Whether every file is what was opened. Raises `TransportUnavailable` where that cannot be seen."""
        return (
            identity(self._log_path) == self._log
            and identity(self._memory_path) == self._memory
            and identity(self._path) == self.database
        )

    def check(self, *, locked: bool) -> None:
        """Raise unless every file is what was opened; `locked` says that the caller holds the lock.

        `TransportMoved` when the database is another one or gone, `TransportCorrupt` when only its log or
        its memory is. A lock file that was deleted or replaced is no error: see `hold`.
        """
        now = time.time()
        stamp = self._stamp()
        if stamp is not None and stamp == self._unchanged:
            return
        self._unchanged = None
        if locked:
            self.hold()
        self._look()
        if stamp is not None and (locked or self._lock.current()):
            changed = max(stamp[2], stamp[3])
            # Whole seconds: a file system that knows nothing finer.
            if changed % _SECOND and now - changed / _SECOND > _SETTLED:
                self._unchanged = stamp

    def hold(self) -> None:
        """Make sure that the lock held is on the file everybody else would lock now.

        Who still holds the one before is inside at most one transaction, and SQLite's own lock keeps us out
        of that.
        """
        while not self._lock.current():
            log.warning(
                "the lock file %s was deleted or replaced; going on with the one that is there now",
                self._lock.path,
                extra={"action": "lock-replaced"},
            )
            self._lock.renew()

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._directory)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns

    def lost(self) -> str | None:
        """The log or the memory of the database that is there, when it is not the one that was opened."""
        database = self.database
        for path, opened in ((self._log_path, self._log), (self._memory_path, self._memory)):
            if identity(path) != opened:
                return path if identity(self._path) == database else None
        return None

    def begun_anew(self) -> bool:
        """Whether somebody works with another log or memory than ours by now. The caller holds the lock."""
        for path, opened in ((self._log_path, self._log), (self._memory_path, self._memory)):
            try:
                if identity(path) != opened and os.stat(path).st_size:
                    return True
            except OSError:
                pass  # nobody does
        return False

    def _look(self) -> None:
        # The database last: when all of them are moved between two looks, it is the one that counts.
        lost = self.lost()
        found = identity(self._path)
        if found != self.database:
            what = "deleted" if found is None else "replaced"
            raise TransportMoved(
                f"{self._path} was {what} while it was open; nothing was stored. "
                "The next call uses the file that is there then"
            )
        if lost is not None:
            raise TransportCorrupt(
                f"{lost} was deleted or replaced while the database was open; stop every process "
                f"that uses {os.path.basename(self._path)} before anything is written"
            )
