"""SQLite's errors in our words, on every Python: old ones say the code only in the text."""

from __future__ import annotations

import sqlite3

import pytest

from taskmq import errors
from taskmq.transports.sqlite.faults import is_full, is_io, primary_code, translate


def coded(text: str, code: int) -> sqlite3.Error:
    """As Python 3.11 and newer raise it."""
    error = sqlite3.OperationalError(text)
    setattr(error, "sqlite_errorcode", code)  # noqa: B010 - the name is new in 3.11
    return error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("database or disk is full", errors.TransportFull),
        ("database disk image is malformed", errors.TransportCorrupt),
        ("file is not a database", errors.TransportCorrupt),
        ("database is locked", errors.TransportUnavailable),
        ("database table is locked: x", errors.TransportUnavailable),
        ("attempt to write a readonly database", errors.TransportUnavailable),
        ("disk I/O error", errors.TransportUnavailable),
        ("unable to open database file", errors.TransportUnavailable),
        ("no such table: message", errors.TransportError),
    ],
)
def test_a_text_without_a_code_is_understood(text: str, expected: type) -> None:
    fault = translate(sqlite3.OperationalError(text), "/data/q.db")

    assert type(fault) is expected
    assert "/data/q.db" in str(fault)
    assert text in str(fault)


def test_a_code_counts_more_than_the_text() -> None:
    error = coded("something new", 13 | (1 << 8))

    assert primary_code(error) == 13
    assert is_full(error)
    assert not is_io(error)


@pytest.mark.parametrize(
    "error",
    [
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        OverflowError("Python int too large to convert to SQLite INTEGER"),
        sqlite3.DataError("string or blob too big"),
    ],
)
def test_a_value_that_cannot_be_stored_is_the_callers_fault(error: Exception) -> None:
    assert type(translate(error, "q.db")) is errors.EncodeError


@pytest.mark.parametrize(("code", "found"), [(13, True), (10, False)])
def test_a_full_device_is_recognised(code: int, found: bool) -> None:
    error = coded("x", code)

    assert is_full(error) is found
    assert is_io(error) is not found
