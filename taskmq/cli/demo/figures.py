"""Numbers of the demo: waiting times by priority, and what the bulk work found out. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from taskmq.cli.demo.analysis import most_alike


class Waits(NamedTuple):
    """Waiting times of one priority, in seconds from submit to start."""

    priority: int
    samples: int
    least: float
    p50: float
    p95: float
    most: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that `share` of the ordered values do not exceed (nearest rank)."""
    rank = max(1, -(-len(ordered) * round(share * 100) // 100))
    return ordered[rank - 1]


def span(seconds: float) -> str:
    """A waiting time as precise as it is measured: `0.4ms`, `12ms`, `240ms`, `3.7s`."""
    if seconds < 0.00095:
        return f"{seconds * 1000:.1f}ms"
    return f"{seconds * 1000:.0f}ms" if seconds < 0.9995 else f"{seconds:.1f}s"


def waits_by_priority(waits: Iterable[tuple[int, float]]) -> list[Waits]:
    """(priority, seconds) pairs as one row per priority, the most urgent first."""
    grouped: dict[int, list[float]] = {}
    for priority, seconds in waits:
        grouped.setdefault(priority, []).append(seconds)
    rows = []
    for priority in sorted(grouped, reverse=True):
        ordered = sorted(grouped[priority])
        rows.append(
            Waits(
                priority,
                len(ordered),
                ordered[0],
                percentile(ordered, 0.50),
                percentile(ordered, 0.95),
                ordered[-1],
            )
        )
    return rows


def summary(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What all files together hold; the same for the same files, in whatever order they were done."""
    names = sorted(facts)
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name} {facts[name]['sha256']}\n".encode())
    totals = {
        field: sum(facts[name][field] for name in names)
        for field in ("bytes", "lines", "code_lines", "tokens", "functions", "classes", "branches")
    }
    worst = max(names, key=lambda name: (facts[name]["worst"][1], name), default="")
    one, other, share = most_alike((name, facts[name]["sketch"]) for name in names)
    return {
        "files": len(names),
        **totals,
        "unreadable": sum(facts[name]["error"] is not None for name in names),
        "most_branched": {
            "file": worst,
            "function": facts[worst]["worst"][0] if worst else "",
            "branches": facts[worst]["worst"][1] if worst else 0,
        },
        "most_alike": {"files": [one, other], "share": round(share, 3)},
        "sha256": digest.hexdigest(),
    }
