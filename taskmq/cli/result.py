"""`taskmq result`."""

from __future__ import annotations

import click

from taskmq.cli.codes import FAILED
from taskmq.cli.group import Command
from taskmq.cli.options import json_option, seconds
from taskmq.cli.output import show, show_json
from taskmq.cli.session import Session
from taskmq.cli.views import results as view
from taskmq.states import State


@click.command(cls=Command)
@click.argument("task_id", metavar="ID")
@click.option(
    "--timeout",
    type=float,
    callback=seconds,
    metavar="SECONDS",
    help="Wait so long for it to end; without it nothing is waited for.",
)
@click.option("--traceback", is_flag=True, help="With the traceback of a failure.")
@json_option
@click.pass_context
def result(
    ctx: click.Context, task_id: str, timeout: float | None, traceback: bool, as_json: bool
) -> int:
    """Show what a task returned or how it ended.

    A task that succeeded prints its value as JSON and nothing else. Exit code 0 only for success; 1
    when it failed, has not ended yet or is unknown.
    """
    session = Session.of(ctx)
    results, app = session.results, session.app
    if timeout and session.missing is None:
        results.wait([task_id], timeout)
    record = results.get(task_id)
    state = session.state(task_id)
    if as_json:
        show_json(view.as_json(task_id, state, record, traceback=traceback))
    else:
        now = app.clock.now()
        show(view.lines(task_id, state, record, now, traceback=traceback))
    return 0 if state is State.SUCCEEDED else FAILED
