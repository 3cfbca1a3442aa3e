"""A plot of waiting times on a logarithmic scale, as text. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from taskmq.cli.demo.figures import Waits, span
from taskmq.cli.text import pad


class Glyphs(NamedTuple):
    """What a bar is drawn with: from the least to p95, p50 on it, the most behind it."""

    bar: str
    middle: str
    most: str
    tick: str
    rule: str


DRAWN = Glyphs("━", "●", "·", "┴", "─")
ASCII = Glyphs("=", "O", ".", "+", "-")


class Row(NamedTuple):
    """One bar: its label, its waiting times, and a key that groups rows for colouring."""

    label: str
    waits: Waits
    key: str


def plot(
    rows: Sequence[Row], *, columns: int = 60, glyphs: Glyphs = DRAWN
) -> list[tuple[str, str]]:
    """(key, line) of every bar, then the axis under key "axis"; a decade takes the same room everywhere."""
    if not rows:
        return []
    low = math.floor(math.log10(max(1e-4, min(row.waits.least for row in rows))))
    high = math.ceil(math.log10(max(1e-3, max(row.waits.most for row in rows))))
    high = max(high, low + 1)
    label_width = max(len(row.label) for row in rows)
    columns = max(columns, 10 * (high - low))

    def place(seconds: float) -> int:
        share = (math.log10(max(seconds, 10**low)) - low) / (high - low)
        return round(share * (columns - 1))

    lines = []
    for row in rows:
        cells = [" "] * columns
        waits = row.waits
        for at in range(place(waits.least), place(waits.p95) + 1):
            cells[at] = glyphs.bar
        for at in range(place(waits.p95) + 1, place(waits.most) + 1):
            cells[at] = glyphs.most
        cells[place(waits.p50)] = glyphs.middle
        lines.append((row.key, f"{pad(row.label, label_width)}  {''.join(cells)}".rstrip()))
    rule = [glyphs.rule] * columns
    names = [" "] * (columns + 8)
    for decade in range(low, high + 1):
        at = place(10.0**decade)
        rule[at] = glyphs.tick
        name = span(10.0**decade).replace(".0s", "s")
        start = max(0, min(at - len(name) // 2, columns - len(name) + 4))
        names[start : start + len(name)] = name
    indent = " " * (label_width + 2)
    lines.append(("axis", indent + "".join(rule)))
    lines.append(("axis", indent + "".join(names).rstrip()))
    return lines
