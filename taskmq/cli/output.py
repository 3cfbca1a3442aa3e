"""Writing answers: lines or JSON on stdout, everything said beside the answer on stderr.

Colours only where a terminal reads them (click strips them elsewhere); `NO_COLOR` turns them off on
terminals too.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

import click

from taskmq.cli.text import Table
from taskmq.printable import printable


def is_terminal(stream: Any) -> bool:
    """Whether a person's terminal is behind a stream that may be closed or replaced."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def columns() -> int | None:
    """The width of the terminal behind stdout; None for files and pipes, where nothing is cut."""
    if not is_terminal(sys.stdout):
        return None
    return shutil.get_terminal_size((80, 24)).columns


def wants_color() -> bool | None:
    """What click should do about colours: None lets it look at the stream."""
    return False if os.environ.get("NO_COLOR") else None


def style(text: str, **how: Any) -> str:
    """Styled for a terminal; the codes fall away where none reads them."""
    return click.style(text, **how)


def show(lines: Iterable[str]) -> None:
    """The answer for people."""
    for line in lines:
        click.echo(line, color=wants_color())


def show_table(lines: list[str]) -> None:
    """A table, its header set apart where colours are; or the line that stands for an empty one."""
    heading = lines.heading if isinstance(lines, Table) else 0
    show([*(style(line, bold=True) for line in lines[:heading]), *lines[heading:]])


def show_json(value: Any) -> None:
    """The answer for programs: one document, indented only when a person looks at it.

    ASCII only, so that no control character of a task's name or value reaches a terminal raw.
    """
    indent = 2 if is_terminal(sys.stdout) else None
    click.echo(json.dumps(value, indent=indent, default=str))


def show_json_line(value: Any) -> None:
    """One document of a stream, on one line, handed on at once."""
    click.echo(json.dumps(value, default=str))
    sys.stdout.flush()


def note(text: str) -> None:
    """Something to know beside the answer."""
    for line in _wrapped(printable(text)):
        click.echo(style(line, fg="yellow"), err=True, color=wants_color())


def complain(text: str) -> None:
    """Why it did not work: one line, or as many as the message has."""
    first, *rest = _wrapped("Error: " + printable(text.strip(), multiline=True))
    click.echo(style("Error:", fg="red") + first[6:], err=True, color=wants_color())
    for line in rest:
        click.echo(line, err=True, color=wants_color())


def show_trace(text: str) -> None:
    """A traceback, before the line that says what is wrong."""
    click.echo(printable(text, multiline=True), err=True, nl=False)


def _wrapped(text: str) -> list[str]:
    """Lines of a message, broken between words where a person's terminal would break them anywhere."""
    lines = text.split("\n")
    if not is_terminal(sys.stderr):
        return lines
    wide = shutil.get_terminal_size((80, 24)).columns
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, wide, break_long_words=False, break_on_hyphens=False)
        or [""]
    ]
