"""What a worker takes while it does nothing, at its peak, and until it is there."""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time

from tests.benchmarks.flow import Figures
from tests.benchmarks.peers import Project
from tests.benchmarks.tree import Tree

_MIB = 1024 * 1024
_IMPORT = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
_NAMES = {
    "taskmq": "from taskmq import App",
    "celery": "from celery import Celery",
    "huey": "from huey import SqliteHuey",
    "huey-no-fsync": "from huey import SqliteHuey",
    "huey-redis": "from huey import RedisHuey",
}


def idle_cpu(project: Project) -> Figures:
    """Per cent of one core that the whole tree of an idle worker uses."""
    project.open()
    with project.worker() as worker:
        project.get(project.delay("stamp")())
        time.sleep(2.0)
        tree, seconds = Tree(worker.pid), 4.0 if project.quick else 20.0
        before, began = tree.cpu(), time.monotonic()
        time.sleep(seconds)
        return {"share": 100 * (tree.cpu() - before) / (time.monotonic() - began)}


def memory(project: Project) -> Figures:
    """The peak over the whole tree, in MiB, while it drains no-ops and for a second afterwards."""
    project.open()
    for _ in range(2_000 if project.quick else 20_000):
        project.delay("noop")()
    last = project.delay("stamp")()
    with project.worker() as worker, _Peak(Tree(worker.pid)) as peak:
        project.get(last, 300)
        time.sleep(1.0)
    return {"rss": peak.rss / _MIB, "pss": peak.pss / _MIB}


class _Peak:
    """Looks at a tree every 50 ms while the block runs."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.rss = self.pss = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Peak:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self.rss = max(self.rss, self.tree.rss())
            self.pss = max(self.pss, self.tree.pss())


def importing(project: Project) -> Figures:
    """Milliseconds of the import in a fresh interpreter whose files the system has read before."""
    runs = 5 if project.quick else 15
    name = project.peer.name
    figures = {"names": _imported(_NAMES[name], runs)}
    return {**figures, "package": _imported(f"import {project.peer.needs[0]}", runs)}


def _imported(statement: str, runs: int) -> float:
    def once() -> float:
        command = [sys.executable, "-c", _IMPORT.format(statement)]
        return float(subprocess.run(command, capture_output=True, check=True).stdout) * 1000

    once()
    return statistics.median(once() for _ in range(runs))


def ready(project: Project) -> Figures:
    """Seconds from the worker's command to the start of a task that was waiting for it."""
    project.open()
    times = [_first_start(project) for _ in range(2 if project.quick else 5)]
    return {"first start": statistics.median(times)}


def _first_start(project: Project) -> float:
    waiting = project.delay("stamp")()
    began = time.monotonic()
    with project.worker():
        started: float = project.get(waiting)
    return started - began
