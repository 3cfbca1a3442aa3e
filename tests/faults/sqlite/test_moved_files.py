"""A file beside the database is deleted while it is open (rows 13, 14): nobody writes on (I1, I12)."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from taskmq.errors import TransportCorrupt, TransportUnavailable
from taskmq.transports.sqlite import SQLiteTransport
from taskmq.transports.sqlite.options import SQLiteOptions
from taskmq.worker.exits import EXIT_CORRUPT
from tests.faults.sqlite.actors import QUEUES, message
from tests.faults.worker.conftest import Site
from tests.support.waiting import wait_until


def stored(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows = connection.execute("SELECT message_id FROM message").fetchall()
    connection.close()
    return {row[0] for row in rows}


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_producer_stops_when_log_or_memory_is_deleted_alone(
    actor, path: Path, suffix: str
) -> None:
    producer = actor("produce", "a")
    producer.until_many("accepted", 20)
    os.unlink(f"{path}{suffix}")

    assert producer.process.wait(20) == 1
    accepted = set(producer.said("accepted"))

    assert f"TransportCorrupt: {path}{suffix} was deleted" in producer._started.log(
        producer.process
    )
    # It closed what it had open, and with it went all it was told was stored.
    assert accepted <= stored(path)
    # With every process stopped the file is whole and can be used again.
    transport = SQLiteTransport(path)
    transport.open()
    transport.submit([message("later")])
    transport.close()
    assert stored(path) >= accepted | {"later"}


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_every_way_to_the_file_refuses_it_then(transport, path: Path, suffix: str) -> None:
    transport.submit([message("a")])
    os.unlink(f"{path}{suffix}")

    for use in (
        lambda: transport.submit([message("b")]),
        lambda: transport.peek_max_priority(QUEUES),
        lambda: transport.coordination.checkpoint(),
        lambda: transport.coordination.reap(),
    ):
        with pytest.raises(TransportCorrupt, match=f"{suffix} was deleted"):
            use()


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
@pytest.mark.parametrize("copied_back", [False, True])
def test_what_a_newcomer_stores_and_what_was_stored_before_both_survive(
    actor, path: Path, suffix: str, copied_back: bool
) -> None:
    # The last connection to close copies its log back: it must not be one to a log that is gone.
    keeper = actor("keep_until_told", 20, int(copied_back))
    keeper.until("stored")
    os.unlink(f"{path}{suffix}")
    newcomer = actor("produce", "new", 5)
    newcomer.process.wait(20)
    accepted = set(newcomer.said("accepted"))
    os.kill(keeper.pid, signal.SIGUSR1)
    assert keeper.until("refused") == "TransportCorrupt"
    keeper.until("anew TransportCorrupt")
    keeper.process.wait(20)

    # Where the log was deleted with something in it, the newcomer could not even open the file.
    assert len(accepted) == (0 if suffix == "-wal" and not copied_back else 5)
    assert stored(path) == {f"kept-{n}" for n in range(20)} | accepted


def test_a_change_within_the_same_tick_is_not_overlooked(transport, path: Path) -> None:
    # The directory's time stands still within a tick of the kernel: many of these hit one.
    for n in range(300):
        transport.submit([message(f"m{n}")])
        (path.parent / "neighbour").touch()
        (path.parent / "neighbour").unlink()
    transport.submit([message("last")])
    os.unlink(f"{path}-shm")

    with pytest.raises(TransportCorrupt):
        transport.submit([message("refused")])


def test_an_idle_worker_ends_with_the_code_of_a_damaged_store(site: Site) -> None:
    worker = site.worker("w")
    site.app.close()
    os.unlink(site.folder / "q.db-shm")

    assert worker.wait(20) == EXIT_CORRUPT
    assert "event=transport.corrupt" in site.log(worker)


def test_after_the_lock_file_is_deleted_all_lock_the_new_one(
    actor, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transport = SQLiteTransport(path, options=SQLiteOptions(busy_timeout=0.2))
    transport.open()
    transport.submit([message("before")])
    os.unlink(f"{path}.lock")
    # It holds the lock of the file it has made.
    holder = actor("hold_until_told")
    holder.until("inside")

    with pytest.raises(TransportUnavailable, match=f"lock is held by process {holder.pid}"):
        transport.submit([message("refused")])
    holder.kill()
    transport.submit([message("after")])
    transport.close()

    assert "queue.db.lock was deleted or replaced" in caplog.text
    assert stored(path) == {"before", "after"}


def test_producers_go_on_whatever_happens_to_the_lock_file(actor, path: Path) -> None:
    producers = [actor("produce", name) for name in ("a", "b")]
    for times in range(1, 6):
        for producer in producers:
            producer.until_many("accepted", 20 * times)
        wait_until(Path(f"{path}.lock").exists)
        os.unlink(f"{path}.lock")
    for producer in producers:
        producer.until_many("accepted", 140)
        producer.kill()

    accepted = {task_id for producer in producers for task_id in producer.said("accepted")}

    assert accepted <= stored(path)
    assert all("was deleted or replaced" in p._started.log(p.process) for p in producers)
