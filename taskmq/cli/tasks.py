"""`taskmq list`: the tasks of an application."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import click

from taskmq.cli.group import Command
from taskmq.cli.options import json_option
from taskmq.cli.output import columns, show, show_json, show_table
from taskmq.cli.session import Session
from taskmq.cli.text import table
from taskmq.options import TaskOptions

# Shown in columns of their own.
_COLUMNS = ("queue", "priority")


@click.command("list", cls=Command)
@json_option
@click.pass_context
def tasks(ctx: click.Context, as_json: bool) -> None:
    """List the tasks of the application.

    With the queue and priority a call gets that names none, and what the task sets besides.
    """
    session = Session.of(ctx)
    app = session.required_app()
    declared = session.own_tasks()
    if as_json:
        show_json(
            [
                {
                    "task": task.name,
                    "queue": task.options.queue or app.config.default_queue,
                    "priority": app.default_priority(task),
                    "async": task.is_async,
                    "options": {
                        name: value if isinstance(value, (bool, int, float)) else _short(value)
                        for name, value in _set(task.options)
                    },
                }
                for task in declared
            ]
        )
    elif not declared:
        show(["the application has no tasks"])
    else:
        show_table(
            table(
                ["TASK", "QUEUE", "PRIORITY", "SETS"],
                [
                    (
                        task.name,
                        task.options.queue or app.config.default_queue,
                        f"P{app.default_priority(task)}",
                        ", ".join(f"{name}={_short(value)}" for name, value in _set(task.options)),
                    )
                    for task in declared
                ],
                align="<<><",
                columns=columns(),
                elastic=(3,),
                below=(1, 2, 3),
            )
        )


def _set(options: TaskOptions) -> Iterator[tuple[str, Any]]:
    """What differs from the defaults."""
    for name, value in _changed(options):
        if name not in _COLUMNS:
            yield name, value


def _changed(value: Any) -> Iterator[tuple[str, Any]]:
    for field in fields(value):
        own = getattr(value, field.name)
        if own != field.default:
            yield field.name, own


def _short(value: Any) -> str:
    """A value as it would be written: a policy by what it sets, classes and functions by their names."""
    if is_dataclass(value):
        inner = ", ".join(f"{name}={_short(own)}" for name, own in _changed(value))
        return f"{type(value).__name__}({inner})"
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))}{',' if len(value) == 1 else ''})"
    if callable(value):
        return str(getattr(value, "__qualname__", value))
    return f"{value:g}" if isinstance(value, float) else str(value)
