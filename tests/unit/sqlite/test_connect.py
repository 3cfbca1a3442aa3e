"""What every connection is set to, and which SQLite versions are named."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from taskmq.transports.sqlite import SQLiteTransport, connect
from taskmq.transports.sqlite.connect import has_wal_reset_bug


@pytest.mark.parametrize("name", ["_writer", "_reader"])
def test_each_connection_has_the_measured_settings(transport, name: str) -> None:
    transport.operators.queues()
    connection = getattr(transport._store, name)

    def pragma(setting: str):
        return connection.execute(f"PRAGMA {setting}").fetchone()[0]

    assert pragma("journal_mode") == "wal"
    assert pragma("synchronous") == 1
    assert pragma("wal_autocheckpoint") == connect.CHECKPOINT_PAGES
    assert pragma("secure_delete") == 0
    assert pragma("trusted_schema") == 0
    assert pragma("query_only") == int(name == "_reader")
    assert pragma("temp_store") == 2
    assert pragma("auto_vacuum") == 2
    assert pragma("journal_size_limit") == 64 * 1024 * 1024


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 0), True),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
    ],
)
def test_the_versions_with_the_wal_reset_bug_are_known(version, affected: bool) -> None:
    assert has_wal_reset_bug(version) is affected


@pytest.mark.parametrize("affected", [True, False])
def test_an_affected_version_is_noted_for_the_banner_and_not_logged(
    path: Path, affected: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connect, "has_wal_reset_bug", lambda: affected)
    caplog.set_level(logging.DEBUG, "taskmq.sqlite")
    transport = SQLiteTransport(path)
    transport.open()
    transport.operators.queues()
    transport.close()

    assert sum("WAL-reset" in said for said in transport.notes()) == int(affected)
    assert caplog.text == ""


def test_a_file_that_was_not_there_is_noted_for_the_banner(path: Path) -> None:
    first, second = SQLiteTransport(path), SQLiteTransport(path)
    for transport in (first, second):
        transport.open()
        transport.close()

    assert any("has just been made" in said for said in first.notes())
    assert not any("has just been made" in said for said in second.notes())
