"""Words and tables for people. Pure: values in, text out; no terminal is asked here."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime

from taskmq.printable import printable

# One letter per column: how a cell sits in it.
LEFT, RIGHT = "<", ">"

# What a column that gives way keeps: both ends and the ellipsis still say something.
_LEAST = 9


def duration(seconds: float) -> str:
    """A span in the two largest units that matter: `4ms`, `0.3s`, `12s`, `4m12s`, `3h05m`, `2d04h`."""
    seconds = max(0.0, seconds)
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def moment(at: float, now: float) -> str:
    """A point in time: the local clock, with the date when it is another day."""
    there, here = (datetime.fromtimestamp(t).astimezone() for t in (at, now))
    return there.strftime("%H:%M:%S" if there.date() == here.date() else "%Y-%m-%d %H:%M:%S")


def plural(count: int, one: str, many: str = "") -> str:
    """`1 message`, `3 messages`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def size(octets: float) -> str:
    """Bytes in the unit that keeps the number short: `512 B`, `3.4 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if octets < 1024:
            return f"{octets:.0f} {unit}" if unit == "B" else f"{octets:.1f} {unit}"
        octets /= 1024
    return f"{octets:.1f} TiB"


def printable_lines(text: str) -> list[str]:
    """The lines of a longer text, each made printable; its line breaks are the only ones kept."""
    return printable(text.rstrip(), multiline=True).split("\n")


def width(text: str) -> int:
    """Columns a text takes on a terminal: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    columns = 0
    for character in text:
        if not unicodedata.combining(character):
            columns += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return columns


def shorten(text: str, columns: int) -> str:
    """At most `columns` wide, cut in the middle: both ends of a task name tell it from others."""
    if columns < 1 or width(text) <= columns:
        return text
    head = tail = ""
    while text:
        # Grow both ends by turns until one more character would not fit beside the ellipsis.
        if width(head) <= width(tail):
            if width(head + tail + text[0]) > columns - 1:
                break
            head, text = head + text[0], text[1:]
        else:
            if width(head + tail + text[-1]) > columns - 1:
                break
            tail, text = text[-1] + tail, text[:-1]
    return f"{head}…{tail}"


def pad(text: str, columns: int, side: str = LEFT) -> str:
    """Filled up to `columns` as a terminal shows it."""
    fill = " " * max(0, columns - width(text))
    return fill + text if side == RIGHT else text + fill


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    align: str = "",
    columns: int | None = None,
    elastic: Sequence[int] = (),
) -> list[str]:
    """Aligned lines: a header and one line per row; every cell is made printable.

    `align` has one of `<` and `>` per column. With `columns` (a terminal's width) the `elastic` columns
    give way in turn where a line would be wider; without it nothing is ever cut.
    """
    cells = [list(headers), *([printable(str(cell)) for cell in row] for row in rows)]
    widths = [max(width(row[i]) for row in cells) for i in range(len(headers))]
    for column in elastic:
        if columns is None:
            break
        over = sum(widths) + 2 * (len(widths) - 1) - columns
        if over > 0:
            least = min(widths[column], max(_LEAST, width(headers[column])))
            widths[column] = max(least, widths[column] - over)
    sides = align or LEFT * len(headers)
    return [
        "  ".join(
            pad(shorten(cell, wide), wide, side)
            for cell, wide, side in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in cells
    ]
