"""Submit, drain, idle latency and queue-jump of TaskMQ beside Celery on Redis, in one run, as one table.

    python -m tests.benchmarks.compare [--quick] [--redis redis://localhost:6379/9]

Machines are shared and noisy: read the ratios, not the rates.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.peers import Peer, stop, write_projects


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ready(module: Any) -> None:
    """Wait until the worker has run one task."""
    module.stamp.apply_async().get(timeout=60)


def flow(peer: Peer, module: Any, quick: bool) -> dict[str, float]:
    # One band, first in first out on both: two tasks that say when they ran stand around the no-ops.
    count = 3000 if quick else 20000
    first = module.stamp.delay()
    began = time.perf_counter()
    for _ in range(count):
        module.noop.delay()
    submitted = time.perf_counter() - began
    last = module.stamp.delay()
    worker = peer.worker(concurrency=2)
    try:
        drained = last.get(timeout=600) - first.get(timeout=600)
    finally:
        stop(worker)
    return {"submit /s": count / submitted, "drain prefork 2 /s": count / drained}


def idle(peer: Peer, module: Any, quick: bool) -> dict[str, float]:
    worker = peer.worker(concurrency=2)
    try:
        ready(module)
        starts, gets = [], []
        for n in range(60 if quick else 300):
            time.sleep(2.0 if n % 30 == 29 else 0.02)
            began_wall, began = time.time(), time.perf_counter()
            started = module.stamp.delay().get(timeout=30)
            gets.append((time.perf_counter() - began) * 1000)
            starts.append((started - began_wall) * 1000)
        return {
            "idle start p50 ms": statistics.median(starts),
            "idle start p99 ms": percentile(starts, 0.99),
            "submit to get p50 ms": statistics.median(gets),
        }
    finally:
        stop(worker)


def jump(peer: Peer, module: Any, quick: bool) -> dict[str, float]:
    nap, slots, count = 0.02, 4, 600 if quick else 3000
    for _ in range(count):
        module.nap.apply_async((nap,), priority=peer.normal)
    worker = peer.worker(concurrency=slots)
    try:
        ready_at = module.stamp.apply_async(priority=peer.urgent).get(timeout=60)
        waits = []
        for _ in range(8 if quick else 40):
            time.sleep(0.13)
            asked = time.time()
            waits.append(
                (module.stamp.apply_async(priority=peer.urgent).get(timeout=120) - asked) / nap
            )
        last = module.stamp.apply_async(priority=peer.normal).get(timeout=600)
        return {
            "jump p50 durations": statistics.median(waits),
            "jump max durations": max(waits),
            "naps /s meanwhile": count / (last - ready_at),
        }
    finally:
        stop(worker)


STEPS: tuple[Callable[[Peer, Any, bool], dict[str, float]], ...] = (flow, idle, jump)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    parser.add_argument("--redis", default="redis://localhost:6379/9")
    parser.add_argument("--only", choices=[s.__name__ for s in STEPS], action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sys.path.insert(0, name)
        rows: dict[str, dict[str, float]] = {}
        peers = write_projects(folder, options.redis)
        for peer in peers:
            module = importlib.import_module(peer.module)
            for step in STEPS:
                if options.only and step.__name__ not in options.only:
                    continue
                for label, value in step(peer, module, options.quick).items():
                    rows.setdefault(label, {})[peer.name] = value
    names = [p.name for p in peers]
    print(f"{'':24}" + "".join(f"{n:>12}" for n in names) + f"{'ratio':>10}")
    for label, values in rows.items():
        cells = "".join(f"{values.get(n, float('nan')):12.2f}" for n in names)
        ratio = values["TaskMQ"] / values["Celery"] if len(values) == 2 else float("nan")
        print(f"{label:24}{cells}{ratio:10.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
