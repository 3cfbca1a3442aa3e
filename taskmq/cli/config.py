"""`taskmq config`: the settings in force, and whether they fit together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

import click

from taskmq.cli.group import Group
from taskmq.cli.options import json_option
from taskmq.cli.output import columns, show, show_json, show_table, style
from taskmq.cli.session import Session
from taskmq.cli.text import table
from taskmq.config import Config
from taskmq.transports.urls import mask_url

# Settings whose value may hold a password.
_URLS = ("broker_url", "result_url")
# What a setting that is left open means, in the words of docs/configuration.md; the others mean none.
_LEFT_OPEN = {
    "concurrency": "number of CPUs",
    "prefetch": "= concurrency",
    "result_url": "beside the messages",
    "aging_interval": "off",
}


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def config(ctx: click.Context) -> None:
    """Show or check the settings.

    Without a command they are shown.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(show_settings, as_json=False, changed=False)


@config.command("show")
@click.option("--changed", is_flag=True, help="Only those that differ from their default.")
@json_option
@click.pass_context
def show_settings(ctx: click.Context, changed: bool, as_json: bool) -> None:
    """Show all settings with their values and defaults. Passwords in URLs are masked."""
    settings = Session.of(ctx).app.config
    rows = [row for row in _rows(settings) if row[3] or not changed]
    if as_json:
        show_json(
            {
                name: {"value": value, "default": default, "changed": differs}
                for name, value, default, differs in rows
            }
        )
        return
    show_table(
        table(
            ["SETTING", "VALUE", "DEFAULT"],
            [
                (name, _text(name, value), _text(name, default) if differs else "")
                for name, value, default, differs in rows
            ],
            columns=columns(),
            elastic=(1, 2),
        )
    )


@config.command()
@json_option
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> None:
    """Check the settings and say what they may not do as meant.

    A setting that is wrong by itself is refused with exit code 2 by every command; this one also tells
    what is allowed and seldom wanted.
    """
    session = Session.of(ctx)
    session.required_app()
    found = session.advice()
    if as_json:
        show_json({"ok": True, "advice": found})
    else:
        show([*(style(f"! {line}", fg="yellow") for line in found), "the settings are valid"])


def _rows(settings: Config) -> Iterator[tuple[str, Any, Any, bool]]:
    for field in fields(Config):
        if field.default is not MISSING:
            default: Any = field.default
        else:
            assert field.default_factory is not MISSING
            default = field.default_factory()
        value = getattr(settings, field.name)
        yield field.name, _plain(field.name, value), _plain(field.name, default), value != default


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it, without passwords."""
    if name in _URLS and value is not None:
        return mask_url(value)
    if name == "queues":
        return {
            queue: {"weight": one.weight, "priority": one.priority} for queue, one in value.items()
        }
    if isinstance(value, tuple):
        return list(value)
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _text(name: str, value: Any) -> str:
    if value is None:
        return _LEFT_OPEN.get(name, "none")
    if value in ({}, []):
        return "none"
    if isinstance(value, dict):
        return "; ".join(
            f"{queue}: weight {one['weight']}"
            + ("" if one["priority"] is None else f", priority {one['priority']}")
            for queue, one in value.items()
        )
    if isinstance(value, list):
        return ", ".join(map(str, value))
    # Never 2.592e+06: people compare and copy these.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
