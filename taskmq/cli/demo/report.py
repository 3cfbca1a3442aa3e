"""What the demo says at its end: the table, the plot, what the bulk work found. Pure."""

from __future__ import annotations

from typing import Any

from taskmq.cli.demo.figures import Waits, span
from taskmq.cli.demo.plot import Glyphs, Row, plot
from taskmq.cli.text import pad, plural, size

NAMES = {9: "urgent", 5: "high", 0: "normal", -5: "bulk"}
MODES = ("on", "off")
Rounds = dict[str, list[Waits]]


def wait_table(rounds: Rounds) -> list[str]:
    """Waiting time by priority, both rounds side by side."""
    columns = ["p50", "p95", "max"]
    head = pad("", 14) + pad("", 7)
    names = pad("PRIORITY", 14) + pad("COUNT", 7, ">")
    for mode in MODES:
        title = f"yielding {mode}"
        head += "   " + pad(title, 24)
        names += "   " + "".join(pad(c, 8, ">") for c in columns)
    lines = [head.rstrip(), names]
    off = {waits.priority: waits for waits in rounds["off"]}
    for on in rounds["on"]:
        line = pad(label(on.priority), 14) + pad(str(on.samples), 7, ">")
        for waits in (on, off.get(on.priority)):
            cells = (waits.p50, waits.p95, waits.most) if waits else ()
            line += "   " + "".join(pad(span(c), 8, ">") for c in cells)
        lines.append(line)
    return lines


def label(priority: int) -> str:
    """`P9 urgent`."""
    return f"P{priority} {NAMES.get(priority, '')}".rstrip()


def wait_plot(rounds: Rounds, columns: int, glyphs: Glyphs) -> list[tuple[str, str]]:
    """The bars of both rounds, priority by priority."""
    off = {waits.priority: waits for waits in rounds["off"]}
    rows = []
    for on in rounds["on"]:
        rows.append(Row(f"{label(on.priority):<10} on", on, "on"))
        if on.priority in off:
            rows.append(Row(f"{'':<10} off", off[on.priority], "off"))
    return plot(rows, columns=columns, glyphs=glyphs)


def found(summary: dict[str, Any]) -> list[str]:
    """What the bulk work found out about the sources."""
    worst, alike = summary["most_branched"], summary["most_alike"]
    lines = [
        f"{summary['files']} files, {size(summary['bytes'])}, {summary['lines']:,} lines "
        f"({summary['code_lines']:,} of code)",
        f"{summary['tokens']:,} tokens, {summary['functions']:,} functions, "
        f"{summary['classes']:,} classes, {summary['branches']:,} branches",
        f"most branches: {worst['function']}() in {worst['file']} ({worst['branches']})",
    ]
    if alike["share"]:
        one, other = alike["files"]
        lines.append(f"most alike: {one} and {other} (about {alike['share']:.0%} the same)")
    lines.append(f"sha256 over all: {summary['sha256'][:16]}")
    return lines


def verdict(rounds: Rounds) -> list[str]:
    """What yielding did to the most urgent requests, in a line or two."""
    if not rounds["on"] or not rounds["off"]:
        return ["no request was measured"]
    on, off = rounds["on"][0], rounds["off"][0]
    lines = [
        f"Half of the {plural(on.samples, 'urgent request')} began within {span(on.p50)}, "
        f"without yielding within {span(off.p50)}."
    ]
    factor = off.p50 / on.p50 if on.p50 else 0.0
    if factor >= 2:
        lines.append(f"That is {factor:.0f} times sooner.")
    return lines
