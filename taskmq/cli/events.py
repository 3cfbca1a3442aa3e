"""`taskmq events`."""

from __future__ import annotations

import click

from taskmq.cli.codes import FAILED
from taskmq.cli.group import Command
from taskmq.cli.output import note, show, show_json_line
from taskmq.cli.session import Session
from taskmq.cli.text import moment
from taskmq.coordination.base import Event
from taskmq.errors import nearest
from taskmq.events import KINDS
from taskmq.printable import printable

# How long one look waits for the store's wake-up; bounds how late an event is shown.
_LOOK = 0.5


def _kinds(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:
    """The kinds meant by whole names or by the word before the dot."""
    found: set[str] = set()
    for name in value:
        family = name.removesuffix(".") + "."
        meant = [kind for kind in KINDS if kind == name or kind.startswith(family)]
        if not meant:
            families = dict.fromkeys(kind.partition(".")[0] for kind in KINDS)
            raise click.BadParameter(
                f"there is no kind {name!r}.{nearest(name, [*KINDS, *families])} The kinds are "
                f"{', '.join(families)} (all of each), {', '.join(KINDS)}"
            )
        found.update(meant)
    return frozenset(found)


@click.command(cls=Command)
@click.option("--follow/--no-follow", default=True, help="Go on until interrupted (the default).")
@click.option("--after", type=click.IntRange(0), metavar="NUMBER", help="From after this event on.")
@click.option("--all", "everything", is_flag=True, help="From the oldest event that is kept.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="NAME",
    callback=_kinds,
    help="Only these, as `task` (all of them) or `queue.depth`.",
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
    kinds: frozenset[str],
    as_json: bool,
) -> int:
    """Follow what happens, as lines of JSON.

    Tasks (received, started, succeeded, failed, retried, yielded, …), workers and `queue.depth`:
    depth and oldest age by queue and priority, and `queue.starving` when a priority waits too long.
    Workers write events only when they are told to: `taskmq worker -E`, or `events=True`.
    """
    session = Session.of(ctx)
    transport = session.transport
    if follow and session.missing is not None:
        # Nothing can ever come from what stands in for the store.
        return FAILED
    coordination = transport.coordination
    if after is None:
        after = 0 if everything or not follow else coordination.last_event()
    if follow and not any(worker.details.get("events") for worker in coordination.workers()):
        note("no live worker writes events; start one with `taskmq worker -E`")
    while True:
        page = coordination.events(after=after)
        for event in page:
            after = event.number
            if not kinds or event.kind in kinds:
                _print(event, as_json, transport.clock.now())
        if page:
            continue
        if not follow:
            return 0
        transport.wait(_LOOK)


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
