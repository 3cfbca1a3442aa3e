"""Is the installation sound: versions of Python, SQLite and the dependencies."""

from __future__ import annotations

import platform
import sqlite3
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from taskmq._version import __version__
from taskmq.cli.checks import FAIL, NOTE, OK, WARN, Finding
from taskmq.transports.sqlite.connect import has_wal_reset_bug

# RETURNING and UPSERT as the store uses them.
_OLDEST_SQLITE = (3, 35, 0)
_REQUIRED = ("kombu", "click")


def check() -> Iterator[Finding]:
    """Findings about this Python and what is installed in it."""
    yield Finding(OK, "taskmq", __version__)
    yield Finding(OK, "python", f"{platform.python_version()} on {platform.platform(terse=True)}")
    for package in _REQUIRED:
        try:
            yield Finding(OK, package, version(package))
        except PackageNotFoundError:
            yield Finding(FAIL, package, f"is not installed in {sys.prefix}")
    yield _sqlite()


def _sqlite() -> Finding:
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE))
        return Finding(FAIL, "sqlite", f"{found} is too old, {oldest} is the oldest that works")
    if not sqlite3.threadsafety:
        return Finding(WARN, "sqlite", f"{found} was built without threads: use one thread only")
    if has_wal_reset_bug():
        return Finding(
            NOTE,
            "sqlite",
            f"{found} has the WAL-reset bug (fixed in 3.51.3): TaskMQ's own processes keep clear of it, "
            "other programs should not write to the database while they run",
        )
    return Finding(OK, "sqlite", found)
