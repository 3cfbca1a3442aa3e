"""`taskmq revoke`."""

from __future__ import annotations

import click

from taskmq.cli.group import Command
from taskmq.cli.options import json_option
from taskmq.cli.output import show, show_json
from taskmq.cli.session import Session
from taskmq.printable import printable
from taskmq.states import State
from taskmq.transports.base import Transport
from taskmq.transports.operators import Revoked

_OVER = {
    State.SUCCEEDED: "it has succeeded",
    State.FAILED: "it has failed",
    State.REVOKED: "it was revoked",
    State.EXPIRED: "it has expired",
    State.DEAD: "it is a dead letter",
}


@click.command(cls=Command)
@click.argument("task_ids", nargs=-1, required=True, metavar="ID...")
@click.option("--terminate", is_flag=True, help="Stop those that run, too, where the pool can.")
@click.option("--reason", default="", metavar="TEXT", help="Kept with the result.")
@json_option
@click.pass_context
def revoke(
    ctx: click.Context, task_ids: tuple[str, ...], terminate: bool, reason: str, as_json: bool
) -> None:
    """Never start these tasks.

    What waits ends as revoked now; an id that is not known yet is remembered and ends when it arrives.
    A running task goes on and sees it in `ctx.check_cancelled()`; with --terminate it is stopped.
    """
    transport = Session.of(ctx).acting
    done = transport.operators.revoke(task_ids, reason=reason)
    if any(one.was in (State.RUNNING, State.RESERVED) for one in done):
        # The store has the mark already; this only makes the workers look at once.
        arguments = {"task_ids": list(task_ids), "terminate": terminate, "reason": reason}
        transport.coordination.send("revoke", arguments)
    if as_json:
        show_json([{"task_id": r.task_id, "was": str(r.was), "ended": r.ended} for r in done])
    else:
        show([f"{printable(one.task_id)}: {_said(one, terminate, transport)}" for one in done])


def _said(one: Revoked, terminate: bool, transport: Transport) -> str:
    if one.ended:
        return f"revoked, it was {one.was}"
    if one.was.final:
        return f"over already, {_OVER[one.was]}"
    if one.was is State.UNKNOWN:
        return "not known here; it will be revoked when it arrives"
    if one.was is State.RUNNING:
        how = "it goes on unless it checks"
        if terminate:
            heard = not _is_deaf(one.task_id, transport)
            how = (
                "its worker is told to stop it" if heard else f"its worker takes no commands; {how}"
            )
        return f"running, {how}"
    return f"{one.was}, it will not start"


def _is_deaf(task_id: str, transport: Transport) -> bool:
    """Whether the worker that runs this task takes no control commands (`remote_control`)."""
    deaf = {
        worker.name
        for worker in transport.coordination.workers()
        if worker.details.get("control") is False
    }
    return bool(deaf) and any(one.worker in deaf for one in transport.operators.find(task_id))
