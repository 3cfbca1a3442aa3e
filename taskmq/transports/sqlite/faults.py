"""SQLite's errors in our words, so that a caller knows whether to wait, to make room or to stop."""

from __future__ import annotations

import os
import sqlite3

from taskmq.errors import (
    EncodeError,
    TaskMQError,
    TransportCorrupt,
    TransportError,
    TransportFull,
    TransportUnavailable,
)

# Primary result codes. Python 3.10 does not put them on the exception, hence the texts.
_FULL, _CORRUPT, _NOTADB, _BUSY, _LOCKED = 13, 11, 26, 5, 6
_READONLY, _IOERR, _CANTOPEN, _PERM = 8, 10, 14, 3
_TEXTS = (
    ("is full", _FULL),
    ("malformed", _CORRUPT),
    ("not a database", _NOTADB),
    ("table is locked", _LOCKED),
    ("is locked", _BUSY),
    ("readonly", _READONLY),
    ("disk I/O error", _IOERR),
    ("unable to open", _CANTOPEN),
    ("access permission denied", _PERM),
)
_OF_THE_STORE = frozenset(code for _, code in _TEXTS)


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code of an error, 0 where it is not known."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return int(code) & 0xFF
    text = str(error)
    return next((code for part, code in _TEXTS if part in text), 0)


def is_full(error: BaseException) -> bool:
    """Whether the device or the store has no room."""
    return isinstance(error, sqlite3.Error) and primary_code(error) == _FULL


def is_io(error: BaseException) -> bool:
    """Whether the outcome of a commit that failed so is unknown: it may be on the disk."""
    return isinstance(error, sqlite3.Error) and primary_code(error) == _IOERR


def concerns_the_store(error: BaseException) -> bool:
    """Whether an error would meet any other row as well: then it says nothing about this one."""
    if isinstance(error, (TransportError, sqlite3.OperationalError)):
        return True
    return isinstance(error, sqlite3.Error) and primary_code(error) in _OF_THE_STORE


def translate(error: BaseException, path: str) -> TaskMQError:
    """The TaskMQ error for what SQLite or its Python module raised about the file at `path`."""
    if isinstance(error, UnicodeEncodeError):
        return EncodeError(f"text that is not valid Unicode cannot be stored: {error}")
    if isinstance(error, OverflowError):
        return EncodeError(f"a number does not fit in 64 bits: {error}")
    if isinstance(error, sqlite3.DataError):
        return EncodeError(f"a value is too large for {path}: {error}")
    if not isinstance(error, sqlite3.Error):
        return TransportError(f"{path}: {error}")
    code = primary_code(error)
    if code == _FULL:
        return TransportFull(f"no room left for {path}: {error}; nothing was stored")
    if code in (_CORRUPT, _NOTADB):
        return TransportCorrupt(
            f"{path} is damaged or not a database: {error}; it was not changed "
            "(`taskmq doctor` checks it)"
        )
    if code in (_BUSY, _LOCKED):
        return TransportUnavailable(f"{path} is locked by another program: {error}")
    if code in (_READONLY, _CANTOPEN, _PERM):
        uid = f" by user {os.getuid()}" if hasattr(os, "getuid") else ""
        return TransportUnavailable(f"{path} cannot be opened for writing{uid}: {error}")
    if code == _IOERR:
        return TransportUnavailable(f"{path}: {error}")
    return TransportError(f"{path}: {error}")
