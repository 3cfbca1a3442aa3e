"""Words and tables for people. Pure: values in, text out; no terminal is asked here."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from taskmq.printable import printable

# One letter per column: how a cell sits in it.
LEFT, RIGHT = "<", ">"

_GAP = "  "
# A second line of a row begins so far in.
_INDENT = " " * 4

# What a column that gives way keeps: both ends and the ellipsis still say something.
_LEAST = 9
# What it keeps where a second line can take something off it instead.
_COMFORT = 16


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


class Table(list[str]):
    """The lines of a table, of which the first `heading` are its header."""

    def __init__(self, lines: Iterable[str], heading: int) -> None:
        super().__init__(lines)
        self.heading = heading


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    align: str = "",
    columns: int | None = None,
    elastic: Sequence[int] = (),
    below: Sequence[int] = (),
) -> Table:
    """Aligned lines: a header and one line per row; every cell is made printable.

    `align` has one of `<` and `>` per column. With `columns` (a terminal's width) the `elastic` columns
    give way in turn where a line would be wider, and no other is ever cut: ids and names are there to be
    copied. Where that would leave too little of them, the columns `below` stand on a second line. Without
    `columns` it is one line each, uncut.
    """
    cells = [list(headers), *([printable(str(cell)) for cell in row] for row in rows)]
    sides = align or LEFT * len(headers)
    everything = range(len(headers))
    widths = _widths(cells, everything, elastic, columns, _COMFORT if below else _LEAST)
    if columns is None or not below or _total(widths) <= columns:
        return Table([_line(row, everything, widths, sides) for row in cells], 1)
    above = [i for i in everything if i not in below]
    first = _widths(cells, above, elastic, columns, _LEAST)
    second = _widths(cells, below, elastic, columns - len(_INDENT), _LEAST)
    lines = []
    for row in cells:
        lines.append(_line(row, above, first, sides))
        under = _line(row, below, second, sides)
        if under:
            lines.append(_INDENT + under)
    return Table(lines, 2)


def _widths(
    cells: Sequence[Sequence[str]],
    chosen: Sequence[int],
    elastic: Sequence[int],
    columns: int | None,
    least: int,
) -> dict[int, int]:
    """The width of each chosen column, elastic ones down to `least` where a line would be too wide."""
    widths = {i: max(width(row[i]) for row in cells) for i in chosen}
    for column in elastic:
        if columns is None or column not in widths:
            continue
        over = _total(widths) - columns
        if over > 0:
            kept = min(widths[column], max(least, width(cells[0][column])))
            widths[column] = max(kept, widths[column] - over)
    return widths


def _total(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + len(_GAP) * (len(widths) - 1)


def _line(row: Sequence[str], chosen: Sequence[int], widths: Mapping[int, int], sides: str) -> str:
    return _GAP.join(pad(shorten(row[i], widths[i]), widths[i], sides[i]) for i in chosen).rstrip()
