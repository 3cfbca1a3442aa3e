"""A damaged file (row 12): refused, never repaired, made anew or cut off, and there is a way out (I12)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskmq.errors import TransportCorrupt
from taskmq.transports.sqlite import SQLiteTransport
from taskmq.worker.exits import EXIT_CORRUPT
from tests.faults.sqlite.actors import QUEUES, ROOT, message
from tests.support.processes import Processes, processes
from tests.support.waiting import wait_until

PAGE = 4096

WORKER = """
import sys
from taskmq import App
from taskmq.worker.options import WorkerOptions
from taskmq.worker.worker import Worker
app = App(broker_url="sqlite:///" + sys.argv[1])
sys.exit(Worker(app, WorkerOptions(concurrency=1, pool="solo", queues=["q"])).run())
"""


def filled(path: Path) -> SQLiteTransport:
    transport = SQLiteTransport(path)
    transport.open()
    transport.submit([message(f"m{n}", body=b"x" * 1000) for n in range(300)])
    return transport


def root_of(path: Path, table: str) -> int:
    """The first page of a table."""
    connection = sqlite3.connect(path)
    sql = "SELECT rootpage FROM sqlite_master WHERE name = ?"
    page: int = connection.execute(sql, (table,)).fetchone()[0]
    connection.close()
    return page


def overwrite(path: Path, page: int) -> bytes:
    """Put rubbish in the place of one page; what the file is then."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xa5" * PAGE)
    return path.read_bytes()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Processes]:
    with processes(tmp_path) as started:
        yield started


@pytest.fixture
def damaged(path: Path) -> bytes:
    """A database whose table of messages has lost its root page; its content."""
    filled(path).close()
    return overwrite(path, root_of(path, "message"))


def test_one_damaged_page_is_met_where_it_is_read_and_nothing_is_written(
    path: Path, damaged: bytes
) -> None:
    transport = SQLiteTransport(path)
    transport.open()

    with pytest.raises(TransportCorrupt, match="`taskmq doctor` checks it") as refused:
        transport.submit([message("refused")])
    assert not refused.value.retryable
    with pytest.raises(TransportCorrupt):
        transport.operators.peek(QUEUES, 10)
    transport.close()

    # The header counts who opened it; every page of content is what it was.
    assert path.read_bytes()[PAGE:] == damaged[PAGE:]
    assert len(path.read_bytes()) == len(damaged)


def test_a_worker_on_a_damaged_file_ends_with_its_code(
    started: Processes, path: Path, damaged: bytes
) -> None:
    worker = started.python("-c", WORKER, str(path), env={"PYTHONPATH": str(ROOT)})

    assert worker.wait(30) == EXIT_CORRUPT, started.log(worker)
    # It has written its own row before it met the damage; that is where it was, and nothing is cut off.
    lost = (root_of(path, "message") - 1) * PAGE
    now = path.read_bytes()
    assert now[lost : lost + PAGE] == damaged[lost : lost + PAGE]
    assert len(now) >= len(damaged)


def test_a_worker_ends_when_the_file_is_damaged_under_it(started: Processes, path: Path) -> None:
    transport = filled(path)
    transport.coordination.checkpoint()
    worker = started.python("-c", WORKER, str(path), env={"PYTHONPATH": str(ROOT)})
    wait_until(lambda: transport.coordination.workers() or worker.poll() is not None, 20)
    assert worker.poll() is None, started.log(worker)
    size = path.stat().st_size
    for page in range(2, size // PAGE + 1):
        overwrite(path, page)

    assert worker.wait(30) == EXIT_CORRUPT, started.log(worker)
    assert path.stat().st_size >= size


def test_doctor_says_what_is_wrong_and_what_to_do_and_leaves_it_alone(
    path: Path, damaged: bytes
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "taskmq", "-b", f"sqlite:///{path}", "doctor"],
        capture_output=True,
        text=True,
        timeout=40,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    assert ended.returncode == 1, ended.stderr
    (said,) = [line for line in ended.stdout.splitlines() if "pages" in line]
    assert said.startswith("fail")
    assert ".recover" in ended.stdout
    assert path.read_bytes() == damaged


def test_what_doctor_recommends_brings_the_other_tables_back(path: Path, damaged: bytes) -> None:
    # `.recover` belongs to the sqlite3 program, which is not everywhere; a table is read without it, too.
    connection = sqlite3.connect(path)

    assert connection.execute("SELECT count(*) FROM ready").fetchone() == (300,)
    connection.close()


def test_a_log_full_of_rubbish_is_not_mixed_in(path: Path) -> None:
    filled(path).close()
    Path(f"{path}-wal").write_bytes(os.urandom(3 * PAGE))

    transport = SQLiteTransport(path)
    transport.open()

    assert len(transport.operators.peek(QUEUES, 1000)) == 300
    transport.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
