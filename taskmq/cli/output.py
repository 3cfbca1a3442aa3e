"""Writing answers: lines or JSON on stdout, everything said beside the answer on stderr.

Colours only where a terminal reads them (click strips them elsewhere); `NO_COLOR` turns them off on
terminals too.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable
from typing import Any

import click

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
    """A table: its header is set apart where colours are."""
    show([style(lines[0], bold=True), *lines[1:]] if len(lines) > 1 else lines)


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
    click.echo(style(printable(text), fg="yellow"), err=True, color=wants_color())


def complain(text: str) -> None:
    """Why it did not work: one line, or as many as the message has."""
    first, *rest = printable(text.strip(), multiline=True).split("\n")
    click.echo(style("Error: ", fg="red") + first, err=True, color=wants_color())
    for line in rest:
        click.echo(line, err=True, color=wants_color())
