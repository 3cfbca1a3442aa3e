"""Options that several commands share, and how their values are read.

`-A`, `-b` and `--as-celery` belong to every command and are accepted before or after its name, as Celery
users write both; the place nearer to the command wins.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from taskmq.priority import MAX_PRIORITY, MIN_PRIORITY, check_priority

F = TypeVar("F", bound=Callable[..., Any])


class WhereOption(click.Option):
    """An option that says which application or store is meant; listed apart in the help."""


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        from taskmq.cli.session import Session

        session = ctx.ensure_object(Session)
        if ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
            if value == "":
                raise click.BadParameter(f"a {param.metavar} is expected, got ''", ctx, param)
            setattr(session, name, value)
        elif value and not getattr(session, name):
            # The variable is read once before the command and once behind it: whatever was written out
            # in either place has to win.
            setattr(session, name, value)
        return value

    return callback


def where_options() -> list[click.Option]:
    """New copies of the options every command has."""
    return [
        WhereOption(
            ["-A", "--app"],
            metavar="MODULE",
            envvar="TASKMQ_APP",
            expose_value=False,
            callback=_remember("app_spec"),
            help="The application: `proj`, `proj.mod` or `proj.mod:app`. Also $TASKMQ_APP.",
        ),
        WhereOption(
            ["-b", "--broker"],
            metavar="URL",
            expose_value=False,
            callback=_remember("broker"),
            help="Where the messages are, in place of the application's `broker_url`; "
            "commands that only look need no application then.",
        ),
        WhereOption(
            ["--as-celery"],
            is_flag=True,
            envvar="TASKMQ_AS_CELERY",
            expose_value=False,
            callback=_remember("as_celery"),
            help="Let `import celery` mean TaskMQ, for projects that cannot be edited.",
        ),
        WhereOption(
            ["--workdir"],
            metavar="DIR",
            type=click.Path(exists=True, file_okay=False),
            expose_value=False,
            callback=_remember("workdir"),
            help="Change to this directory first.",
        ),
    ]


def json_option(command: F) -> F:
    """`--json`, on every command that reads."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        command
    )


def queues_option(text: str) -> Callable[[F], F]:
    """`-Q/--queues`, comma-separated and repeatable, as Celery has it."""

    def decorate(command: F) -> F:
        return click.option(
            "-Q", "--queues", multiple=True, metavar="NAMES", callback=queue_names, help=text
        )(command)

    return decorate


def queue_names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> list[str]:
    """`("a,b", "c")` as `["a", "b", "c"]`, each once."""
    names = [name.strip() for text in value for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def _priority(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """An int in -9..9. One that is out of range raises `PriorityError`, with its own words."""
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        raise click.BadParameter(
            f"an int from {MIN_PRIORITY} to {MAX_PRIORITY} (larger = more urgent), got {value!r}"
        ) from None
    return check_priority(number, param.opts[0])


def priority_option(text: str) -> Callable[[F], F]:
    """`--priority`; `text` says what holds without it."""
    shown = f"{MIN_PRIORITY}..{MAX_PRIORITY}"
    return click.option("--priority", callback=_priority, metavar=shown, help=text)


def seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """A finite number of seconds from 0."""
    if value is not None and (not math.isfinite(value) or value < 0):
        raise click.BadParameter(f"seconds from 0, got {value!r}")
    return value


def json_list(ctx: click.Context, param: click.Parameter, value: str | None) -> list[Any]:
    """A JSON array."""
    return _json(value, list, "a JSON array such as '[1, \"two\"]'") if value is not None else []


def json_object(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, Any]:
    """A JSON object."""
    return _json(value, dict, "a JSON object such as '{\"to\": 1}'") if value is not None else {}


def _json(text: str, kind: type, accepted: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"{accepted} is expected, got {text!r} ({error})") from None
    if not isinstance(value, kind):
        raise click.BadParameter(f"{accepted} is expected, got {text!r}")
    return value
