"""`taskmq queue` and `taskmq purge`: what concerns whole queues."""

from __future__ import annotations

import click

from taskmq.cli.asking import confirm
from taskmq.cli.group import Command, Group
from taskmq.cli.options import json_option, queues_option
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
    transport = session.transport
    paused = {info.name: info.paused for info in transport.operators.queues()}
    ready: dict[str, int] = {}
    for depth in transport.operators.depth():
        ready[depth.queue] = ready.get(depth.queue, 0) + depth.ready
    known = [
        {
            "queue": name,
            "paused": paused.get(name, False),
            "ready": ready.get(name, 0),
            "weight": config.queue(name).weight,
            "priority": config.queue(name).priority,
            "configured": name in config.queues or name == config.default_queue,
        }
        for name in sorted({*paused, *ready, *config.queues, config.default_queue})
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
            elastic=(0,),
        )
    )


@queue.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_context
def pause(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Start nothing from these queues until they are resumed.

    What runs goes on, what is submitted is kept. A name that was never used is paused too, ahead of
    its first message.
    """
    operators = Session.of(ctx).transport.operators
    for name in names:
        operators.pause(name)
        show([f"{printable(name)} is paused"])


@queue.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_context
def resume(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Start from these queues again."""
    operators = Session.of(ctx).transport.operators
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
    callback=lambda ctx, param, value: [n for text in value for n in text.split(",")],
    help="But not these.",
)
@click.option("-f", "--force", is_flag=True, help="Do not ask.")
@click.pass_context
def purge(ctx: click.Context, queues: list[str], exclude_queues: list[str], force: bool) -> None:
    """Delete all messages that wait in queues.

    Scheduled and blocked ones too. What a worker holds goes on; dead letters stay.
    """
    operators = Session.of(ctx).transport.operators
    names = queues or [info.name for info in operators.queues()]
    names = [name for name in names if name not in exclude_queues]
    depths = operators.depth(names) if names else []
    waiting = sum(d.ready + d.scheduled + d.blocked for d in depths)
    if not names:
        show(["there is no queue to purge"])
        return
    where = ", ".join(printable(name) for name in names)
    confirm(f"Delete {plural(waiting, 'message')} of {where}?", sure=force, flag="--force")
    for name in names:
        show([f"{printable(name)}: deleted {plural(operators.purge(name), 'message')}"])
