"""The file is no longer ours: deleted, moved or replaced under an open transport."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from taskmq.errors import (
    TransportCorrupt,
    TransportMoved,
)
from taskmq.states import State
from taskmq.transports.base import Outcome, Verb
from taskmq.transports.sqlite import SQLiteTransport
from tests.unit.sqlite.looking import ids


def replaced(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        os.rename(f"{path}{suffix}", f"{path}.old{suffix}")


def test_a_producer_learns_that_the_file_is_gone_and_nothing_is_lost_in_it(
    transport, path: Path, bench
) -> None:
    transport.submit([bench.message("before")])
    replaced(path)

    with pytest.raises(TransportMoved, match="was deleted"):
        transport.submit([bench.message("refused")])
    transport.submit([bench.message("after")])

    assert path.exists()
    assert ids(transport) == ["after"]


def test_a_producer_learns_that_another_file_is_in_its_place(transport, path: Path, bench) -> None:
    transport.submit([bench.message("before")])
    replaced(path)
    other = SQLiteTransport(path)
    other.open()

    with pytest.raises(TransportMoved, match="was replaced"):
        transport.submit([bench.message("refused")])
    transport.submit([bench.message("after")])

    assert ids(other) == ["after"]
    other.close()


def test_a_file_deleted_alone_shares_nothing_with_the_new_one(
    transport, path: Path, bench, caplog: pytest.LogCaptureFixture
) -> None:
    transport.submit([bench.message("before")])
    path.unlink()
    other = SQLiteTransport(path)
    other.open()
    other.submit([bench.message("new")])

    with pytest.raises(TransportMoved):
        transport.submit([bench.message("refused")])
    transport.submit([bench.message("after")])

    assert ids(other) == ids(transport) == ["new", "after"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    other.close()
    # It may have been moved, not deleted; then its last commits are in here.
    assert Path(f"{path}-wal.orphan1").stat().st_size > 0
    assert "orphan1" in caplog.text


def test_a_file_moved_alone_can_be_made_whole_again(
    transport, path: Path, tmp_path: Path, bench
) -> None:
    transport.submit([bench.message("before")])
    moved = tmp_path / "moved.db"
    path.rename(moved)
    with pytest.raises(TransportMoved):
        transport.submit([bench.message("refused")])
    transport.submit([bench.message("after")])

    os.rename(f"{path}-wal.orphan1", f"{moved}-wal")
    other = SQLiteTransport(moved)
    other.open()

    assert ids(other) == ["before"]
    assert ids(transport) == ["after"]
    other.close()


def test_a_worker_goes_on_with_the_file_that_is_there(
    transport, path: Path, bench, caplog: pytest.LogCaptureFixture
) -> None:
    transport.submit([bench.message("old")])
    (held,) = transport.reserve(bench.request())
    replaced(path)
    other = SQLiteTransport(path)
    other.open()
    other.submit([bench.message("new")])

    turn = transport.turn([Outcome(delivery=held, verb=Verb.FINISH)], bench.request())

    assert turn.lost == (held,)
    assert [d.message.task_id for d in turn.deliveries] == ["new"]
    assert "is another file than before" in caplog.text
    other.close()


def test_an_idle_worker_notices_too(transport, path: Path, bench) -> None:
    assert transport.turn((), bench.request()).deliveries == ()
    replaced(path)
    other = SQLiteTransport(path)
    other.open()
    other.submit([bench.message("new")])

    assert [d.message.task_id for d in transport.turn((), bench.request()).deliveries] == ["new"]
    other.close()


def test_who_reads_results_follows_the_file(transport, path: Path, bench) -> None:
    assert transport.results.state("a") is State.UNKNOWN
    replaced(path)
    other = SQLiteTransport(path)
    other.open()
    other.submit([bench.message("a")])

    assert transport.results.state("a") is State.QUEUED
    other.close()


def test_a_deleted_log_stops_every_write(transport, path: Path, bench) -> None:
    transport.submit([bench.message("a")])
    os.unlink(f"{path}-wal")

    with pytest.raises(TransportCorrupt, match=r"-wal was deleted"):
        transport.submit([bench.message("b")])
    with pytest.raises(TransportCorrupt):
        transport.turn((), bench.request())
