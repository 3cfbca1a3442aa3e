"""The comparison as a table, for a terminal and for the document."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from collections.abc import Mapping, Sequence

from tests.benchmarks.figures import FIGURES, Figure, Values
from tests.benchmarks.peers import PEERS

Results = Mapping[Figure, Values]


def conditions(peers: Sequence[str], rounds: int, quick: bool, load: float) -> list[str]:
    """When, where and how it was measured. `load` is the load average before it began."""
    busy = load > (os.cpu_count() or 1) / 4
    # Each package once, however many ways to use it are measured.
    versions = ", ".join(dict.fromkeys(PEERS[name].version() for name in peers))
    return [
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, Linux {platform.release().split('-')[0]}, "
        f"{os.cpu_count()} cores, load average at the start {load:.2f}.",
        f"{versions}.",
        f"Median of {rounds} interleaved round{'s' * (rounds > 1)}"
        + (
            ", a third to a fifth of the messages and seconds that the configurations name (--quick)."
            if quick
            else "."
        ),
        *(["The machine was busy with other work: only the ratios say something."] if busy else []),
    ]


def number(value: float | None) -> str:
    """Three figures at least, and no more than can be read."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _verdict(figure: Figure, values: Values) -> str:
    reached = figure.reached(values)
    return "–" if reached is None else "yes" if reached else "NO"


def _header(peers: Sequence[str]) -> list[str]:
    others = [PEERS[name].title for name in peers if name != "taskmq"]
    return ["what", "unit", "TaskMQ", *others, "× Celery", "to reach", "reached"]


def _line(figure: Figure, values: Values, peers: Sequence[str]) -> list[str]:
    others = [number(values.get(name)) for name in peers if name != "taskmq"]
    return [
        figure.what,
        figure.unit,
        number(values.get("taskmq")),
        *others,
        number(figure.ratio(values, "celery")),
        figure.bound(),
        _verdict(figure, values),
    ]


def text(results: Results, peers: Sequence[str]) -> str:
    """Aligned columns; the configuration of each row below it where it is its first."""
    shown = [f for f in FIGURES if f in results]
    lines = [_header(peers), *(_line(f, results[f], peers) for f in shown)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    out = []
    for figure, line in zip([None, *shown], lines, strict=True):
        cells = [
            cell.ljust(width) if n in (0, 1, len(line) - 2) else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        out.append("  ".join(cells).rstrip().replace("`", ""))
        if figure is not None and figure.config and figure.config != "as above":
            out.append(f"    ({figure.config})".replace("`", ""))
    return "\n".join(out)


def markdown(results: Results, peers: Sequence[str]) -> str:
    """The table of docs/performance.md: the same, with the configuration as a column."""
    header = [*_header(peers), "configuration"]
    rows = [[*_line(f, results[f], peers), f.config] for f in FIGURES if f in results]
    align = ["---", "---", *["--:"] * (len(peers) + 1), "---", "---", "---"]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, align, *rows))
