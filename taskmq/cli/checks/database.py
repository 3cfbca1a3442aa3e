"""Is the SQLite file sound: its place, its permissions, the room around it, its pages.

Looked at from outside, read-only and before the transport opens it: a damaged file must not be touched.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from taskmq.cli.checks import FAIL, NOTE, OK, WARN, Finding
from taskmq.cli.text import size
from taskmq.transports.sqlite.files import network_file_system
from taskmq.transports.sqlite.options import SQLiteOptions

# Below that the next checkpoint may already fail.
_LITTLE_ROOM = 256 * 1024 * 1024
# A log this long says that something keeps a read open, or that nobody checkpoints.
_LONG_LOG = 256 * 1024 * 1024

RECIPE = (
    "stop every process that uses it, copy the file with its -wal and -shm, then try "
    "`sqlite3 COPY .recover | sqlite3 NEW` and point broker_url at NEW"
)


def check(path: Path, options: SQLiteOptions) -> Iterator[Finding]:
    """Findings about one database; the last one fails when its pages are damaged."""
    if not path.exists():
        yield Finding(NOTE, "database", f"{path} is not there yet; the first submit makes it")
        yield from _room(path.parent)
        return
    yield Finding(OK, "database", f"{path}, {size(path.stat().st_size)}")
    yield from _permissions(path, options)
    network = network_file_system(str(path.parent))
    if network:
        said = f"it is on {network}: SQLite's locks do not hold between machines there"
        yield Finding(WARN if options.network_fs else FAIL, "file system", said)
    yield from _room(path.parent)
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size > _LONG_LOG:
        yield Finding(
            WARN,
            "log",
            f"{log.name} is {size(log.stat().st_size)}: no live worker checkpoints it, or a program "
            "keeps a read open",
        )
    yield _pages(path)


def _permissions(path: Path, options: SQLiteOptions) -> Iterator[Finding]:
    if not hasattr(os, "getuid"):
        return
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    if mode & ~options.mode:
        yield Finding(
            WARN,
            "permissions",
            f"{mode:04o} lets others in, {options.mode:04o} is wanted: chmod {options.mode:04o} {path}",
        )
    else:
        yield Finding(OK, "permissions", f"{mode:04o}")
    if not os.access(path, os.R_OK | os.W_OK):
        yield Finding(
            FAIL,
            "permissions",
            f"user {os.getuid()} may not write it, it belongs to {found.st_uid}",
        )


def _room(directory: Path) -> Iterator[Finding]:
    if not directory.is_dir():
        yield Finding(FAIL, "directory", f"{directory} does not exist")
        return
    free = shutil.disk_usage(directory).free
    yield Finding(WARN if free < _LITTLE_ROOM else OK, "disk", f"{size(free)} free")


def _pages(path: Path) -> Finding:
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=10)
        try:
            found = [row[0] for row in connection.execute("PRAGMA quick_check(5)")]
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        return Finding(FAIL, "pages", f"{error}; {RECIPE}")
    if found == ["ok"]:
        return Finding(OK, "pages", "quick_check found nothing wrong")
    return Finding(FAIL, "pages", f"{'; '.join(found)}; {RECIPE}")
