"""What a reserve costs when a thousand, a hundred thousand and a million messages are ready."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.benchmarks.bench_sqlite import Bench
from tests.benchmarks.flow import Figures
from tests.benchmarks.peers import Project

QUEUES = 10
_BLOCKS = 10


def claim(project: Project) -> Figures:
    """The median of one reserve in microseconds, 10 queues, 9 bands; the backlogs take turns in blocks."""
    per_block = 50 if project.quick else 300
    backlogs = {"1k": 1_000, "100k": 100_000} | ({} if project.quick else {"1m": 1_000_000})
    benches = {name: filled(project.folder / f"{name}.db", n) for name, n in backlogs.items()}
    times: dict[str, list[float]] = {name: [] for name in backlogs}
    try:
        for _ in range(_BLOCKS):
            for name, bench in benches.items():
                times[name] += [reserve_once(bench) for _ in range(per_block)]
    finally:
        for bench in benches.values():
            bench.transport.close()
    figures = {name: statistics.median(values) * 1e6 for name, values in times.items()}
    if "1m" in figures:
        figures["growth"] = figures["1m"] / figures["1k"]
    return figures


def filled(path: Path, backlog: int) -> Bench:
    bench = Bench(path, QUEUES)
    bench.fill(backlog)
    return bench


def reserve_once(bench: Bench) -> float:
    """Seconds of one reserve; settling it and putting another in its place is not counted."""
    request = bench.request(1)
    began = time.perf_counter()
    (delivery,) = bench.transport.reserve(request)
    took = time.perf_counter() - began
    bench.transport.settle([bench.finish(delivery)])
    bench.transport.submit([bench.message()])
    return took
