"""What is left on the device: the last of it is kept for settling, and the log is made long beforehand.

Measured on small file systems: producers that may use the last block leave a log that cannot be copied back,
for the database cannot grow, and that cannot grow itself either. Then nothing can be settled any more, and
only settling would give room. So a submit is refused while there is still some, and the less there is, the
sooner the log is copied back: what is in it never needs more than an eighth of what is free.
"""

from __future__ import annotations

import os
import sqlite3

from taskmq.errors import TransportFull
from taskmq.transports.sqlite.connect import CHECKPOINT_PAGES

#: Bytes that submits leave alone, on a small device an eighth of it.
RESERVE = 4 * 1024 * 1024
#: Bytes of log there are from the start, so that settling needs none when others fill the device.
LOG = 1024 * 1024
_SHARE = 8
_PAGE = 4096
# With so much free nothing is done, and only looked at every so many transactions.
_PLENTY = CHECKPOINT_PAGES * _PAGE * _SHARE
_BETWEEN = 32
_FEWEST_PAGES = 16


class Room:
    """What one store knows of its device. Used under its mutex."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._directory = os.path.dirname(path) or "."
        self._until_look = 0
        self._pages = CHECKPOINT_PAGES
        self._free: int | None = None
        self._kept = RESERVE

    def opened(self) -> None:
        """There is a new connection, and so a log: give it its length. The caller holds the lock.

        A descriptor of the log may be closed again: SQLite's locks are all on the other two files.
        """
        self._until_look = 0
        self._pages = CHECKPOINT_PAGES
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            free, _ = _on_device(self._directory)
            fd = os.open(f"{self._path}-wal", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                length = os.fstat(fd).st_size
                wanted = min(LOG, free // _SHARE) - length
                if wanted > 0:
                    # Zeros behind its end are no frames to SQLite, which expects old ones there anyway.
                    os.posix_fallocate(fd, length, wanted)
            finally:
                os.close(fd)
        except OSError:
            pass  # no room for that either, or a file system that cannot

    def look(self, connection: sqlite3.Connection) -> None:
        """Before a transaction: see now and then what is free, and keep the log short where little is."""
        self._until_look -= 1
        if self._until_look > 0:
            return
        self._until_look = _BETWEEN
        try:
            free, total = _on_device(self._directory)
        except OSError:
            self._free = None
            return
        self._free = free
        self._kept = min(RESERVE, total // _SHARE)
        pages = CHECKPOINT_PAGES
        if free < _PLENTY:
            self._until_look = 1
            # Powers of two: not another number at each look.
            pages = max(_FEWEST_PAGES, 1 << (free // _SHARE // _PAGE).bit_length() >> 1)
        if pages != self._pages:
            connection.execute(f"PRAGMA wal_autocheckpoint={pages}").fetchall()
            self._pages = pages

    def need(self, connection: sqlite3.Connection) -> None:
        """Raise `TransportFull` when what is left is kept for settling."""
        if self._free is None or self._free >= self._kept:
            return
        # Pages that messages gave back when they ended need no room on the device.
        unused = connection.execute("PRAGMA freelist_count").fetchone()[0] * _PAGE
        if self._free + unused < self._kept:
            raise TransportFull(
                f"no room left for {self._path}: {self._free // 1024} KiB are free on its device, and "
                f"the last {self._kept // 1024} KiB are kept for what tasks leave when they end; nothing was "
                "stored"
            )


def _on_device(directory: str) -> tuple[int, int]:
    """Bytes free for us and in all."""
    if not hasattr(os, "statvfs"):
        import shutil

        usage = shutil.disk_usage(directory)
        return usage.free, usage.total
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
