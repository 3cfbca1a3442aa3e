"""`taskmq status`."""

from __future__ import annotations

import click

from taskmq.cli.group import Command
from taskmq.cli.known import declared_queues, note_unknown_queues
from taskmq.cli.options import json_option, queues_option
from taskmq.cli.output import columns, show, show_json, show_table, style
from taskmq.cli.session import Session
from taskmq.cli.views import status as view

# Dead letters are counted so far and no further: their messages come along.
_DEAD_CAP = 100


@click.command(cls=Command)
@click.option("--by-priority", is_flag=True, help="Counts and oldest age of every priority.")
@queues_option("Only these queues.")
@json_option
@click.pass_context
def status(ctx: click.Context, by_priority: bool, queues: list[str], as_json: bool) -> None:
    """Show what waits, how long, and who serves it.

    Read from the store, never by asking workers: a busy or dead one shows by the time since it last
    reported. With --by-priority a line reads `email: P9=3 P5=12 P0=104`: so many claimable messages of
    queue email per priority.
    """
    session = Session.of(ctx)
    seen = look(session, queues)
    note_unknown_queues(session, queues)
    if as_json:
        show_json(view.as_json(seen))
        return
    if by_priority:
        show([*view.by_priority(seen), view.worker_summary(seen)])
    else:
        show([seen.where, ""])
        show_table(view.by_queue(seen, columns()))
        show([""])
        show_table(view.worker_lines(seen, columns()))
    alarms = view.warnings(seen)
    if alarms:
        show(["", *(style(f"! {alarm}", fg="yellow") for alarm in alarms)])


def look(session: Session, queues: list[str]) -> view.Status:
    """Ask the store for everything the view shows."""
    transport = session.transport
    dead = len(transport.operators.dead_letters(limit=_DEAD_CAP))
    return view.gather(
        where=session.where,
        now=transport.clock.now(),
        depths=transport.operators.depth(queues or None),
        queues=transport.operators.queues(),
        workers=transport.coordination.workers(),
        dead=dead,
        dead_capped=dead == _DEAD_CAP,
        starvation_after=session.app.config.starvation_after,
        declared=declared_queues(session),
        only=queues,
    )
