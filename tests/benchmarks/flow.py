"""How many no-op tasks a producer submits, and a worker drains, in a second.

Beside each rate stands what it took: CPU microseconds of the producer, or of the worker's whole tree, for one
task. They are in no table, but they hold still where a shared machine makes the rates jump.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.benchmarks.peers import Project
from tests.benchmarks.tree import Tree

Figures = dict[str, float]
_SUBMITS = 20_000
_DRAINED = 20_000
# A transaction that waits for the disk takes a millisecond, not a tenth of one.
_FULL = 2_000


def submit(project: Project) -> Figures:
    """One producer, one `delay()` after the other; no worker runs."""
    return _rate(project.open(), _SUBMITS)


def submit_full(project: Project) -> Figures:
    """The same where every call survives a power cut."""
    return _rate(project.open(full=True), _FULL)


def _rate(project: Project, count: int) -> Figures:
    count = int(count * project.peer.share) // (4 if project.quick else 1)
    delay = project.delay("noop")
    for _ in range(count // 20):
        delay()
    spent, began = time.process_time(), time.perf_counter()
    for _ in range(count):
        delay()
    rate = count / (time.perf_counter() - began)
    return {"rate": rate, "cpu us": (time.process_time() - spent) / count * 1e6}


def drain(pool: str, slots: int) -> Callable[[Project], Figures]:
    """A worker drains what was there before it started, from the first task's start to the last one's."""

    def measure(project: Project) -> Figures:
        project.open()
        count = int(_DRAINED * project.peer.share) // (5 if project.quick else 1)
        # One band, first in first out: two tasks that say when they started stand around the no-ops.
        stamp, noop = project.delay("stamp"), project.delay("noop")
        first = stamp()
        for _ in range(count):
            noop()
        last = stamp()
        with project.worker(pool, slots) as worker:
            began, spent = project.get(first, 120), Tree(worker.pid).cpu()
            ended = project.get(last, 300)
            spent = Tree(worker.pid).cpu() - spent
        return {"rate": (count + 1) / (ended - began), "cpu us": spent / count * 1e6}

    return measure
