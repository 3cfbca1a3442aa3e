"""`taskmq events`."""

from __future__ import annotations

import click

from taskmq.cli.group import Command
from taskmq.cli.output import note, show, show_json_line
from taskmq.cli.session import Session
from taskmq.cli.text import moment
from taskmq.coordination.base import Event
from taskmq.printable import printable

# How long one look waits for the store's wake-up; bounds how late an event is shown.
_LOOK = 0.5


@click.command(cls=Command)
@click.option("--follow/--no-follow", default=True, help="Go on until interrupted (the default).")
@click.option("--after", type=click.IntRange(0), metavar="NUMBER", help="From after this event on.")
@click.option("--all", "everything", is_flag=True, help="From the oldest event that is kept.")
@click.option(
    "--kind", multiple=True, metavar="NAME", help="Only these, as `task.` or `queue.depth`."
)
@click.option(
    "--json/--text", "as_json", default=True, help="Lines of JSON (the default) or for people."
)
@click.pass_context
def events(
    ctx: click.Context,
    follow: bool,
    after: int | None,
    everything: bool,
    kind: tuple[str, ...],
    as_json: bool,
) -> None:
    """Follow what happens, as lines of JSON.

    Tasks (received, started, succeeded, failed, retried, yielded, …), workers and `queue.depth`:
    depth and oldest age by queue and priority, and `queue.starving` when a priority waits too long.
    Workers write events only when they are told to: `taskmq worker -E`, or `events=True`.
    """
    transport = Session.of(ctx).transport
    coordination = transport.coordination
    if after is None:
        after = 0 if everything or not follow else coordination.last_event()
    if follow and not any(worker.details.get("events") for worker in coordination.workers()):
        note("no live worker writes events; start one with `taskmq worker -E`")
    while True:
        page = coordination.events(after=after)
        for event in page:
            after = event.number
            if not kind or any(_is(event, wanted) for wanted in kind):
                _print(event, as_json, transport.clock.now())
        if page:
            continue
        if not follow:
            return
        transport.wait(_LOOK)


def _is(event: Event, wanted: str) -> bool:
    return event.kind == wanted or (wanted.endswith(".") and event.kind.startswith(wanted))


def _print(event: Event, as_json: bool, now: float) -> None:
    if as_json:
        show_json_line({"number": event.number, "kind": event.kind, "at": event.at, **event.fields})
        return
    fields = " ".join(f"{name}={_short(value)}" for name, value in event.fields.items())
    show([printable(f"{moment(event.at, now)}  {event.kind:<16} {fields}")])


def _short(value: object) -> str:
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        # The bands of queue.depth, as `taskmq status --by-priority` has them.
        return ",".join(f"P{one.get('priority')}={one.get('ready')}" for one in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)
