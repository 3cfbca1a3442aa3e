"""Many writers, strangers that keep the file, readers that keep the log (rows 15, 16, 17) (I1, I2, I12)."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

import taskmq.testing
from taskmq import State
from taskmq.message import ResultRecord
from taskmq.transports.base import Settings
from taskmq.transports.sqlite import SQLiteTransport, sweeping
from taskmq.transports.sqlite.options import SQLiteOptions
from tests.faults.sqlite.actors import QUEUES, message
from tests.faults.sqlite.test_crashes import stored
from tests.support.pools import HeldPool
from tests.support.waiting import wait_until

MEGABYTE = 1 << 20


# -- many at once -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("writers", "each"), [(8, 40), pytest.param(16, 50, marks=pytest.mark.nightly)]
)
def test_many_processes_at_once_never_see_a_busy_file(
    actor, transport: SQLiteTransport, path: Path, writers: int, each: int
) -> None:
    producers = [actor("produce", f"p{n}", each) for n in range(writers)]
    consumers = [actor("consume", f"w{n}", 10_000) for n in range(2)]
    # An error of any kind would end one of them before it is done.
    for producer in producers:
        producer.until("done", 50)
    wait_until(lambda: transport.operators.depth() == [], 30)
    transport.results.put([ResultRecord(task_id="stop", state=State.SUCCEEDED)])
    for consumer in consumers:
        consumer.until("done", 20)
    transport.close()

    taken = [task_id for consumer in consumers for task_id in consumer.said("took")]

    assert sorted(taken) == sorted(f"p{n}-{i}" for n in range(writers) for i in range(each))
    assert stored(path) == []


# -- a stranger's lock ------------------------------------------------------------------------------


def locked_by_a_stranger(path: Path) -> sqlite3.Connection:
    stranger = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    stranger.execute("BEGIN IMMEDIATE")
    return stranger


def test_a_stranger_that_lets_go_in_time_is_waited_for(
    transport: SQLiteTransport, path: Path
) -> None:
    stranger = locked_by_a_stranger(path)
    writer = threading.Thread(target=transport.submit, args=([message("a")],))
    writer.start()
    wait_until(transport._store._mutex.locked)
    assert stored(path) == []

    stranger.execute("ROLLBACK")
    stranger.close()
    writer.join(10)

    assert stored(path) == ["a"]


def test_a_worker_keeps_its_leases_over_a_lock_that_outlasts_a_renewal(path: Path) -> None:
    url = f"sqlite:///{path}?busy_timeout=0.05"
    app = taskmq.testing.app(broker_url=url, lease=30.0)
    work = app.task(name="work")(lambda: None)
    result = work.delay()
    mine, theirs = HeldPool(1), HeldPool(1)
    with (
        taskmq.testing.worker(app, pool=mine, name="a") as a,
        taskmq.testing.worker(app, pool=theirs, name="b") as b,
    ):
        a.step()
        stranger = locked_by_a_stranger(path)
        # Two of the three renewals of a lease fail.
        for _ in range(25):
            a.clock.advance(1)
            a.step()
            b.step()
        stranger.execute("ROLLBACK")
        stranger.close()
        for _ in range(60):
            a.clock.advance(1)
            a.step()
            b.step()
        assert (mine.running(), theirs.running()) == ([result.id], [])
        mine.end(result.id)
        a.step()
    assert result.state is State.SUCCEEDED
    app.close()


@pytest.mark.parametrize(("lease", "noted"), [(30.0, False), (29.0, True)])
def test_a_lease_too_short_for_the_wait_is_noted(path: Path, lease: float, noted: bool) -> None:
    transport = SQLiteTransport(path, Settings(lease=lease), options=SQLiteOptions(busy_timeout=10))

    assert any("busy_timeout" in note for note in transport.notes()) is noted


# -- a reader that stays ----------------------------------------------------------------------------


def test_a_reader_that_stays_stops_nobody_and_the_log_shrinks_into_the_file_after_it(
    transport: SQLiteTransport, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transport.submit([message("first")])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM message").fetchall()
    for n in range(25):
        transport.submit([message(f"m{n}", body=b"x" * (MEGABYTE - 500))])
    assert os.stat(f"{path}-wal").st_size > 20 * MEGABYTE
    transport.coordination.checkpoint()
    assert "long-log" not in {getattr(r, "action", "") for r in caplog.records}

    for n in range(50):
        transport.submit([message(f"n{n}", body=b"x" * (MEGABYTE - 500))])
    transport.coordination.checkpoint()
    assert "long-log" in {getattr(r, "action", "") for r in caplog.records}
    assert sweeping._LONG_LOG * 4096 == 64 * MEGABYTE
    assert reader.execute("SELECT count(*) FROM message").fetchone() == (1,)
    reader.close()

    # Copied back, it is used again from its beginning and grows no more.
    transport.coordination.checkpoint()
    size = os.stat(f"{path}-wal").st_size
    transport.operators.purge("q")
    for n in range(20):
        transport.submit([message(f"o{n}")])
    assert os.stat(f"{path}-wal").st_size <= size
    assert len(transport.operators.peek(QUEUES, 1000)) == 20
