"""A process killed at any failpoint, once, and started again: everything finishes, nothing is lost."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from taskmq.failpoints import VARIABLE, Failpoint
from taskmq.states import State
from taskmq.transports.base import Settings
from taskmq.transports.sqlite import SQLiteTransport
from tests.stress.log import read_logs
from tests.stress.terms import NAMES, PARTS, POINTS_LEASE
from tests.support.processes import Processes, processes
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
# Points that a worker passes only when something happens to it while it holds messages.
DISTURBED = {Failpoint.BEFORE_RELEASE: signal.SIGTERM, Failpoint.IN_REAP: signal.SIGKILL}


class Run:
    """One producer and one worker over one file, both started again whenever they are killed."""

    def __init__(self, started: Processes, directory: Path, point: Failpoint) -> None:
        self._started = started
        self.directory = directory
        self.marker = directory / "hit"
        self._environment = {
            "PYTHONPATH": str(ROOT),
            "STRESS_DIR": str(directory),
            VARIABLE: f"{point.value}=kill@{self.marker}",
        }
        self.killed: Counter[str] = Counter()
        self._worker: subprocess.Popen[str] | None = None
        self._disturb = DISTURBED.get(point)

    def start_worker(self) -> None:
        self._worker = self._started.taskmq(
            "-A", "tests.stress.points:app", "worker", env=self._environment, name="worker"
        )

    def produce(self) -> None:
        """Until a producer has come through."""
        self._start_producer()
        wait_until(self._came_through, 20, what="the producer")

    def _start_producer(self) -> None:
        self._producer = self._started.python(
            "-m", "tests.stress.points", env=self._environment, name="producer"
        )

    def _came_through(self) -> bool:
        self.mend()
        code = self._producer.poll()
        if code == -signal.SIGKILL:
            self.killed["producer"] += 1
            self._start_producer()
            return False
        assert not code, self._started.log(self._producer)
        return code == 0

    def mend(self) -> None:
        """A worker that ended is started again; one that is to be disturbed is, once it holds something."""
        assert self._worker is not None
        code = self._worker.poll()
        if code is not None:
            assert code == -signal.SIGKILL, self._started.log(self._worker)
            self.killed["worker"] += 1
            self.start_worker()
        elif self._disturb is not None and read_logs(self.directory):
            self._worker.send_signal(self._disturb)
            self._disturb = None

    def stop(self) -> str:
        """Let the worker drain; what it and those before it printed."""
        assert self._worker is not None
        self._worker.send_signal(signal.SIGTERM)
        assert self._worker.wait(15) == 0
        return "".join(path.read_text() for path in sorted(self.directory.glob("worker-*.log")))


def drained(transport: SQLiteTransport, run: Run) -> Callable[[], bool]:
    def empty() -> bool:
        run.mend()
        return not transport.operators.depth()

    return empty


@pytest.mark.parametrize("point", Failpoint, ids=lambda point: point.value)
def test_a_process_killed_there_loses_nothing_and_everything_finishes(
    tmp_path: Path, point: Failpoint
) -> None:
    with processes(tmp_path) as started:
        run = Run(started, tmp_path, point)
        run.start_worker()
        run.produce()
        transport = SQLiteTransport(tmp_path / "points.db", Settings(lease=POINTS_LEASE))
        transport.open()
        try:
            wait_until(drained(transport, run), 20, what="the end of all messages")
            said = run.stop()
            assert run.marker.exists(), f"nothing passed {point.value}: {said}"
            states = {name: transport.results.state(name) for name in NAMES}
            assert set(states.values()) == {State.SUCCEEDED}, states
            assert transport.operators.dead_letters() == []
        finally:
            transport.close()

    events = read_logs(tmp_path)
    runs = Counter(e["id"] for e in events if e["ev"] == "start")
    # One kill costs a message at most one run; and one that comes by itself is the lease's.
    assert max(runs.values()) <= 2 + bool(DISTURBED.get(point)), runs
    totals = {e["id"] for e in events if e["ev"] == "total"}
    # A producer that was killed when all was stored comes again with a chord of its own.
    assert len(totals) <= 1 + run.killed["producer"]
    assert totals
    assert all(e["parts"] == list(range(PARTS)) for e in events if e["ev"] == "total")
    connection = sqlite3.connect(tmp_path / "points.db")
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM message").fetchall() == [(0,)]
    finally:
        connection.close()
