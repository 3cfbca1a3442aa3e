"""`taskmq peek`."""

from __future__ import annotations

import click

from taskmq.cli.group import Command
from taskmq.cli.known import note_unknown_queues, shares
from taskmq.cli.options import json_option, queues_option
from taskmq.cli.output import columns, note, show_json, show_table
from taskmq.cli.session import Session
from taskmq.cli.views import peek as view


@click.command(cls=Command)
@queues_option("The queues a worker would consume; all of them without it.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many."
)
@json_option
@click.pass_context
def peek(ctx: click.Context, queues: list[str], limit: int, as_json: bool) -> None:
    """Show the next messages in the order they are taken.

    The order follows from what is stored: priority first, then the turns of the queues inside one
    priority, then (visible_at, seq). Nothing is changed. Messages that are not due, blocked, rate
    limited or in a paused queue are not in it; `taskmq why ID` says which it is.
    """
    session = Session.of(ctx)
    transport = session.transport
    note_unknown_queues(session, queues)
    peeked = transport.operators.peek(shares(session, queues), limit)
    now = transport.clock.now()
    if as_json:
        show_json(view.as_json(peeked, now))
        return
    show_table(view.lines(peeked, now, columns()))
    if not transport.capabilities.exact_peek:
        note("this transport cannot tell the exact order")
