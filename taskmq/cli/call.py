"""`taskmq call`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from taskmq.cli.group import Command
from taskmq.cli.known import note_unknown_queues
from taskmq.cli.options import json_list, json_object, json_option, priority_option, seconds
from taskmq.cli.output import show, show_json
from taskmq.cli.session import Session
from taskmq.errors import ConfigError, nearest


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        # A trailing Z is understood only from Python 3.11 on.
        return datetime.fromisoformat(value[:-1] + "+00:00" if value[-1:] in "Zz" else value)
    except ValueError:
        raise click.BadParameter(
            f"an ISO 8601 time such as 2031-05-04T10:00 (local) or 2031-05-04T10:00+00:00, got {value!r}"
        ) from None


def _expiry(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> float | datetime | None:
    if value is None:
        return None
    try:
        return seconds(ctx, param, float(value))
    except ValueError:
        return _moment(ctx, param, value)


@click.command(cls=Command)
@click.argument("name")
@click.option("-a", "--args", callback=json_list, metavar="JSON", help="Positional arguments.")
@click.option("-k", "--kwargs", callback=json_object, metavar="JSON", help="Keyword arguments.")
@priority_option("Larger is more urgent; without it the task's, its queue's or the default one.")
@click.option("--queue", metavar="NAME", help="Without it the task's queue or the default one.")
@click.option(
    "--countdown", type=float, callback=seconds, metavar="SECONDS", help="Not before so long."
)
@click.option("--eta", callback=_moment, metavar="TIME", help="Not before this ISO 8601 time.")
@click.option(
    "--expires", callback=_expiry, metavar="SECONDS|TIME", help="Do not start it after that."
)
@click.option("--task-id", metavar="ID", help="An id of your own.")
@click.option("--anyway", is_flag=True, help="Submit a name the application does not know, too.")
@json_option
@click.pass_context
def call(
    ctx: click.Context,
    /,
    name: str,
    args: list[Any],
    kwargs: dict[str, Any],
    anyway: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Submit one task by name and print its id.

    With -A the task's own options apply where none is given here. A name the application does not know
    is refused, since no worker of it could run the task; with --anyway, and without -A, it is submitted
    for workers that know it.
    """
    session = Session.of(ctx)
    app = session.app
    missing = session.check_place(made=True)
    if session.app_spec and not anyway and name not in app.registry:
        raise ConfigError(
            f"{name!r} is not a task of {session.app_spec}.{nearest(name, app.registry)} Nothing was "
            "submitted; --anyway submits it for a worker that knows it"
        )
    if options["queue"] is not None and (session.app_spec or missing is None):
        note_unknown_queues(session, [options["queue"]])
    given = {option: value for option, value in options.items() if value is not None}
    try:
        message = app.message(name, args, kwargs, **given)
    except TypeError as error:
        # The task's own signature, checked before anything is stored.
        raise ConfigError(str(error)) from None
    app.publish([message])
    if as_json:
        show_json(
            {
                "task_id": message.task_id,
                "task": message.task,
                "queue": message.queue,
                "priority": message.priority,
                "eta": message.eta,
                "expires_at": message.expires_at,
            }
        )
    else:
        show([message.task_id])
