"""`taskmq why`."""

from __future__ import annotations

import click

from taskmq.cli.codes import FAILED
from taskmq.cli.group import Command
from taskmq.cli.options import json_option
from taskmq.cli.output import show, show_json
from taskmq.cli.session import Session
from taskmq.cli.views import why as view
from taskmq.printable import printable
from taskmq.states import State


@click.command(cls=Command)
@click.argument("task_id", metavar="ID")
@json_option
@click.pass_context
def why(ctx: click.Context, task_id: str, as_json: bool) -> int:
    """Say the one reason why a task waits.

    Or what became of it. One of: not due, behind others, nothing before it, no worker for its queue or
    its name, its workers are stopping, concurrency key held, rate limit, queue paused, yielded, redelivery
    or retry not due yet, reserved, running, dead, its final state, unknown. Exit code 1 for unknown.
    """
    session = Session.of(ctx)
    transport = session.transport
    found = transport.operators.find(task_id)
    reason = view.explain(
        found,
        session.results.get(task_id),
        transport.coordination.workers(),
        now=transport.clock.now(),
        revoked=transport.operators.is_revoked(task_id),
    )
    if as_json:
        show_json(view.as_json(task_id, found, reason))
    else:
        show([printable(view.line(task_id, found, reason))])
    return FAILED if reason.state is State.UNKNOWN else 0
