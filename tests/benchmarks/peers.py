"""The same small project for TaskMQ (SQLite) and for Celery (Redis), written into a folder of its own.

Both store results, run two prefork children unless said otherwise, and are otherwise at their defaults.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TASKS = """
import time

@app.task(name="bench.noop")
def noop():
    return None

@app.task(name="bench.stamp")
def stamp():
    return time.time()

@app.task(name="bench.nap")
def nap(seconds):
    time.sleep(seconds)
"""

TASKMQ = (
    """
from taskmq import App
app = App(broker_url="sqlite:///{folder}/bench.db")
"""
    + TASKS
)

CELERY = (
    """
from celery import Celery
app = Celery("bench", broker="{redis}", backend="{redis}")
app.conf.task_default_queue = "{queue}"
app.conf.broker_transport_options = {{"queue_order_strategy": "priority", "priority_steps": list(range(10))}}
"""
    + TASKS
)


@dataclass
class Peer:
    """One system under measurement."""

    name: str
    module: str
    folder: Path
    urgent: int
    normal: int

    def worker(self, *, concurrency: int, extra: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        program = "taskmq" if self.name == "TaskMQ" else "celery"
        log = (self.folder / f"{self.module}-worker.log").open("ab")
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                program,
                "-A",
                self.module,
                "worker",
                "-c",
                str(concurrency),
                *extra,
            ],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def stop(worker: subprocess.Popen[bytes]) -> None:
    """TERM, then the whole group."""
    worker.send_signal(signal.SIGTERM)
    try:
        worker.wait(20)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(worker.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    worker.wait(10)


def write_projects(folder: Path, redis: str) -> list[Peer]:
    """Write both projects; Celery's only where it can be imported."""
    (folder / "bench_taskmq.py").write_text(TASKMQ.format(folder=folder))
    peers = [Peer("TaskMQ", "bench_taskmq", folder, urgent=9, normal=0)]
    try:
        import celery  # noqa: F401
    except ImportError:
        return peers
    queue = f"bench-{os.getpid()}-{int(time.time())}"
    (folder / "bench_celery.py").write_text(CELERY.format(redis=redis, queue=queue))
    # Celery on Redis serves 0 first.
    peers.append(Peer("Celery", "bench_celery", folder, urgent=0, normal=9))
    return peers
