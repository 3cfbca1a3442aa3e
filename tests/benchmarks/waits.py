"""How long a task waits: at an idle worker, until its result is there, and behind a backlog."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from tests.benchmarks.flow import Figures
from tests.benchmarks.peers import Project

NAP = 0.02
_SLOTS = 4


def percentile(values: list[float], share: float) -> float:
    """The smallest value that at least this share of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def idle(project: Project) -> Figures:
    """One task at a time at an idle worker, in milliseconds: to its start, and until `get()` returns."""
    project.open()
    with project.worker():
        _warm(project)
        starts, gets = _one_by_one(project, 60 if project.quick else 400, 0.02)
        silent, _ = _one_by_one(project, 3 if project.quick else 10, 2.0)
    return {
        "start p50": statistics.median(starts),
        "start p99": percentile(starts, 0.99),
        "silence p50": statistics.median(silent),
        "silence max": max(silent),
        "get p50": statistics.median(gets),
        "get p99": percentile(gets, 0.99),
    }


def _one_by_one(project: Project, count: int, pause: float) -> tuple[list[float], list[float]]:
    stamp = project.delay("stamp")
    starts, gets = [], []
    for _ in range(count):
        time.sleep(pause)
        asked = time.monotonic()
        started = project.get(stamp())
        gets.append((time.monotonic() - asked) * 1000)
        starts.append((started - asked) * 1000)
    return starts, gets


def _warm(project: Project) -> None:
    """Until every child has run something, near enough."""
    for _ in range(20):
        project.get(project.delay("stamp")())


def jump(prefetch: int) -> Callable[[Project], Figures]:
    """Urgent tasks into a backlog of naps: their wait to start in nap lengths, and the naps per second."""

    def measure(project: Project) -> Figures:
        project.open(priorities=True)
        count = 900 if project.quick else 3000
        for _ in range(count):
            project.submit("nap", NAP, priority=project.peer.normal)
        # Peers that cannot be told hold what they hold: their row says so.
        held = prefetch if "prefetch" in project.peer.can else None
        with project.worker("prefork", _SLOTS, held):
            _until(lambda: len(_said(project)) >= 10 * _SLOTS)
            asked = _probes(project, 0.75 * count * NAP / _SLOTS)
            _until(lambda: sum(1 for what, _ in _said(project) if what != "nap") == len(asked))
            said = _said(project)
        return _jumps(asked, said)

    return measure


def _probes(project: Project, seconds: float) -> list[float]:
    """Send urgent ones for a while, at times that no rhythm of naps can match; when each was asked for."""
    dice = random.Random(5)
    asked: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(dice.uniform(0.1, 0.3))
        asked.append(time.monotonic())
        project.submit("probe", len(asked) - 1, priority=project.peer.urgent)
    return asked


def _jumps(asked: list[float], said: list[tuple[str, float]]) -> Figures:
    started = {what: at for what, at in said if what != "nap"}
    waits = [(started[f"probe-{n}"] - at) / NAP for n, at in enumerate(asked)]
    naps = sorted(at for what, at in said if what == "nap")
    within = [at for at in naps if asked[0] <= at <= asked[-1]]
    if naps[-1] < asked[-1]:
        raise RuntimeError("the backlog was gone before the last urgent task: nothing was jumped")
    return {
        "p50": statistics.median(waits),
        "max": max(waits),
        "naps": (len(within) - 1) / (within[-1] - within[0]),
    }


def _said(project: Project) -> list[tuple[str, float]]:
    if not project.log.exists():
        return []
    lines = (line.split() for line in project.log.read_text().splitlines())
    return [(fields[0], float(fields[1])) for fields in lines if len(fields) == 2]


def _until(done: Callable[[], bool], timeout: float = 120.0) -> None:
    deadline = time.monotonic() + timeout
    while not done():
        if time.monotonic() > deadline:
            raise RuntimeError(f"did not happen within {timeout:g} s")
        time.sleep(0.05)
