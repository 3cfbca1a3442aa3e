"""The one way to the file: what an open file survives, and what it says when it cannot."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path
from random import Random

import pytest

from taskmq.errors import (
    EncodeError,
    SubmitUnknown,
    TransportCorrupt,
    TransportError,
    TransportFull,
    TransportUnavailable,
)
from taskmq.states import State
from taskmq.transports.base import Outcome, Verb
from taskmq.transports.sqlite import SQLiteTransport
from taskmq.transports.sqlite.options import SQLiteOptions
from tests.support.waiting import wait_until
from tests.unit.sqlite.looking import ids

# -- life -----------------------------------------------------------------------------------------


def test_open_and_close_may_be_repeated(transport: SQLiteTransport, bench) -> None:
    transport.open()
    transport.submit([bench.message("a")])
    transport.close()
    transport.close()
    transport.open()

    assert ids(transport) == ["a"]


def test_what_is_closed_says_so(transport: SQLiteTransport, bench) -> None:
    transport.close()

    with pytest.raises(TransportError, match="not open"):
        transport.submit([bench.message("a")])
    with pytest.raises(TransportError, match="not open"):
        transport.operators.queues()


def test_closing_leaves_no_log_behind(transport: SQLiteTransport, path: Path, bench) -> None:
    transport.submit([bench.message("a")])
    ids(transport)
    transport.close()

    assert not Path(f"{path}-wal").exists()
    assert not Path(f"{path}-shm").exists()


def test_two_transports_of_one_process_share_the_file(transport, path: Path, bench) -> None:
    other = SQLiteTransport(path)
    other.open()
    other.submit([bench.message("a")])
    other.close()
    transport.submit([bench.message("b")])

    assert ids(transport) == ["a", "b"]


def test_no_descriptor_is_left_open(path: Path, bench) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        transport = SQLiteTransport(path)
        transport.open()
        transport.submit([bench.message("a")])
        ids(transport)
        transport.results.wait(["a"], 0.001)
        transport.wait(0.001)
        transport.close()
    del transport

    assert len(os.listdir("/proc/self/fd")) == before


# -- the file is damaged, full, or taken ----------------------------------------------------------


def test_a_damaged_page_is_corrupt_and_nothing_is_changed(path: Path, transport, bench) -> None:
    transport.submit([bench.message(f"m{n}") for n in range(200)])
    transport.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)

    transport = SQLiteTransport(path)
    with pytest.raises(TransportCorrupt, match="damaged"):
        transport.open()
    assert path.read_bytes() == content


def limit_to_its_size(transport: SQLiteTransport) -> sqlite3.Connection:
    """No page more than the file has: what a full device does, without one."""
    connection = transport._store._writer
    assert connection is not None
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages}")
    return connection


def test_a_full_device_stores_nothing_and_works_again_with_room(transport, bench) -> None:
    transport.submit([bench.message("before")])
    connection = limit_to_its_size(transport)

    with pytest.raises(TransportFull, match="nothing was stored"):
        transport.submit([bench.message(f"m{n}", body=b"x" * 5000) for n in range(50)])
    assert ids(transport) == ["before"]

    connection.execute("PRAGMA max_page_count=1000000")
    transport.submit([bench.message("after")])
    assert ids(transport) == ["before", "after"]


def test_on_a_full_device_settling_still_works(transport, bench) -> None:
    transport.submit([bench.message(f"m{n}", body=b"x" * 2000) for n in range(20)])
    held = transport.turn((), bench.request(20)).deliveries
    limit_to_its_size(transport)

    outcomes = [Outcome(delivery=d, verb=Verb.FINISH) for d in held]

    assert transport.settle(outcomes) == ()
    assert ids(transport) == []


def test_a_full_log_is_copied_back_before_a_settle_gives_up(
    transport, bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport.submit([bench.message("a")])
    (held,) = transport.reserve(bench.request())
    store = transport._store
    real, calls = store._transaction, []

    def full_once(group, *, durable):
        calls.append("transaction")
        if calls.count("transaction") == 1:
            error = sqlite3.OperationalError("database or disk is full")
            raise error
        return real(group, durable=durable)

    checkpoint = store._checkpoint

    def copied():
        calls.append("checkpoint")
        return checkpoint()

    monkeypatch.setattr(store, "_transaction", full_once)
    monkeypatch.setattr(store, "_checkpoint", copied)

    assert transport.settle([Outcome(delivery=held, verb=Verb.FINISH)]) == ()
    assert calls == ["transaction", "checkpoint", "transaction"]


def test_a_stranger_that_keeps_the_file_locked_is_waited_for_and_then_named(
    path: Path, bench
) -> None:
    transport = SQLiteTransport(path, options=SQLiteOptions(busy_timeout=0.05))
    transport.open()
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")

    with pytest.raises(TransportUnavailable, match="locked by another program") as refused:
        transport.submit([bench.message("a")])
    assert refused.value.retryable
    stranger.execute("ROLLBACK")
    stranger.close()
    transport.submit([bench.message("a")])

    assert ids(transport) == ["a"]
    transport.close()


def test_a_commit_that_breaks_off_is_unknown_not_refused(
    transport, bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Breaking:
        def __init__(self, connection):
            self._connection = connection

        def execute(self, sql, *parameters):
            if sql == "COMMIT":
                raise sqlite3.OperationalError("disk I/O error")
            return self._connection.execute(sql, *parameters)

        def __getattr__(self, name):
            return getattr(self._connection, name)

    store = transport._store
    real = store._writer
    store._writer = Breaking(real)
    with pytest.raises(SubmitUnknown, match="may or may not"):
        transport.submit([bench.message("a")])
    store._writer = real
    transport.submit([bench.message("a")])

    assert ids(transport) == ["a"]


def test_full_durability_waits_for_the_disk_at_submits_only(path: Path, bench) -> None:
    transport = SQLiteTransport(path, options=SQLiteOptions(durability="full"))
    transport.open()
    levels: dict[str, str] = {}
    connection = transport._store._writer
    assert connection is not None

    def trace(sql: str) -> None:
        if sql.startswith("PRAGMA synchronous="):
            levels["now"] = sql
        if sql == "COMMIT":
            levels["commit"] = levels.get("now", "PRAGMA synchronous=NORMAL")

    connection.set_trace_callback(trace)
    transport.submit([bench.message("a")])
    assert levels["commit"] == "PRAGMA synchronous=FULL"
    transport.reserve(bench.request())
    assert levels["commit"] == "PRAGMA synchronous=NORMAL"
    connection.set_trace_callback(None)
    transport.close()


# -- one bad value --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [{"task": "lone \ud800 surrogate"}, {"max_deliveries": 2**70}, {"retries": 2**64}]
)
def test_a_value_that_cannot_be_stored_is_the_callers_fault(transport, bench, bad) -> None:
    with pytest.raises(EncodeError):
        transport.submit([bench.message("good"), bench.message("bad", **bad)])

    assert ids(transport) == []
    transport.submit([bench.message("good")])
    assert ids(transport) == ["good"]


def test_a_queue_made_by_a_transaction_that_failed_is_not_remembered(transport, bench) -> None:
    bad = bench.message("bad", queue="new", retries=2**64)

    with pytest.raises(EncodeError):
        transport.submit([bad])
    transport.submit([bench.message("good", queue="new")])

    assert [info.name for info in transport.operators.queues()] == ["new"]
    assert bench.transport is not transport
    assert [f.state for f in transport.operators.find("good")] == [State.QUEUED]


# -- threads --------------------------------------------------------------------------------------


def test_threads_share_one_transport(transport, bench) -> None:
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for n in range(25):
                transport.submit([bench.message(f"{thread}-{n}")])
                transport.results.get(f"{thread}-{n}")
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert errors == []
    assert sum(row.ready for row in transport.operators.depth()) == 200


def test_reading_is_not_held_up_by_a_writer_that_waits(transport, path: Path, bench) -> None:
    transport.submit([bench.message("a")])
    ids(transport)
    stranger = sqlite3.connect(path, isolation_level=None)
    stranger.execute("BEGIN IMMEDIATE")
    writer = threading.Thread(target=transport.submit, args=([bench.message("b")],))
    writer.start()
    wait_until(transport._store._mutex.locked)

    assert ids(transport) == ["a"]
    assert transport.results.state("a") is State.QUEUED

    stranger.execute("ROLLBACK")
    stranger.close()
    writer.join(10)
    assert ids(transport) == ["a", "b"]


def test_random_is_what_was_injected(path: Path) -> None:
    transport = SQLiteTransport(path, random=Random(3))

    assert transport._engine.random.random() == Random(3).random()
