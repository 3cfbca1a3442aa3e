"""`taskmq queue` and `taskmq purge`: what concerns whole queues."""

from __future__ import annotations

import click

from taskmq.cli.asking import confirm
from taskmq.cli.group import Command, Group
from taskmq.cli.known import declared_queues, known_queues, refuse_unknown_queues
from taskmq.cli.options import json_option, queue_names, queues_option
from taskmq.cli.output import columns, show, show_json, show_table
from taskmq.cli.session import Session
from taskmq.cli.text import plural, table
from taskmq.printable import printable


@click.group(cls=Group)
def queue() -> None:
    """List, pause and resume queues."""


@queue.command("list")
@json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the queues of the store and of the settings, with their weights."""
    session = Session.of(ctx)
    config = session.app.config
    operators = session.transport.operators
    paused = {info.name: info.paused for info in operators.queues()}
    ready: dict[str, int] = {}
    for depth in operators.depth():
        ready[depth.queue] = ready.get(depth.queue, 0) + depth.ready
    declared = declared_queues(session)
    known = [
        {
            "queue": name,
            "paused": paused.get(name, False),
            "ready": ready.get(name, 0),
            "weight": config.queue(name).weight,
            "priority": config.queue(name).priority,
            "configured": name in declared,
        }
        for name in sorted({*ready, *known_queues(session)})
    ]
    if as_json:
        show_json(known)
        return
    show_table(
        table(
            ["QUEUE", "READY", "WEIGHT", "PRIORITY", ""],
            [
                (
                    row["queue"],
                    row["ready"],
                    row["weight"],
                    "-" if row["priority"] is None else f"P{row['priority']}",
                    "paused" if row["paused"] else "",
                )
                for row in known
            ],
            align="<>>><",
            columns=columns(),
            below=range(1, 5),
        )
    )


@queue.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--anyway", is_flag=True, help="Pause names that nobody knows yet, too.")
@click.pass_context
def pause(ctx: click.Context, names: tuple[str, ...], anyway: bool) -> None:
    """Start nothing from these queues until they are resumed.

    What runs goes on, what is submitted is kept. A queue of the application is paused ahead of its first
    message, too; a name that neither the application nor the store knows only with --anyway.
    """
    session = Session.of(ctx)
    if not anyway:
        refuse_unknown_queues(session, names, " --anyway pauses it ahead of its first message")
    operators = session.acting.operators
    for name in names:
        operators.pause(name)
        show([f"{printable(name)} is paused"])


@queue.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_context
def resume(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Start from these queues again."""
    session = Session.of(ctx)
    refuse_unknown_queues(session, names)
    operators = session.transport.operators
    for name in names:
        operators.resume(name)
        show([f"{printable(name)} is resumed"])


@click.command(cls=Command)
@queues_option("These queues; all of them without it.")
@click.option(
    "-X",
    "--exclude-queues",
    multiple=True,
    metavar="NAMES",
    callback=queue_names,
    help="But not these.",
)
@click.option("-f", "--force", is_flag=True, help="Do not ask.")
@click.pass_context
def purge(ctx: click.Context, queues: list[str], exclude_queues: list[str], force: bool) -> None:
    """End all messages that wait in queues as revoked.

    Scheduled and blocked ones too. What a worker holds goes on; dead letters stay.
    """
    session = Session.of(ctx)
    operators = session.transport.operators
    refuse_unknown_queues(session, [*queues, *exclude_queues], " Nothing was deleted")
    names = queues or [info.name for info in operators.queues()]
    names = [name for name in names if name not in exclude_queues]
    if not names:
        show(["there is no queue to purge"])
        return
    waiting = sum(d.ready + d.scheduled + d.blocked for d in operators.depth(names))
    where = ", ".join(printable(name) for name in names)
    if not waiting:
        show([f"nothing waits in {where}"])
        return
    confirm(f"Purge {plural(waiting, 'message')} of {where}?", sure=force, flag="--force")
    for name in names:
        show([f"{printable(name)}: purged {plural(operators.purge(name), 'message')}"])
