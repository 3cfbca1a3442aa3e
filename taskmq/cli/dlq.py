"""`taskmq dlq`: list, show, replay, drop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from taskmq.cli.asking import confirm
from taskmq.cli.codes import FAILED
from taskmq.cli.group import Group
from taskmq.cli.known import note_unknown_queues
from taskmq.cli.options import json_option, priority_option
from taskmq.cli.output import columns, complain, note, show, show_json, show_table
from taskmq.cli.progress import Progress
from taskmq.cli.session import Session
from taskmq.cli.text import plural
from taskmq.cli.views import dlq as view
from taskmq.message import DeadLetter
from taskmq.transports.operators import Operators

F = TypeVar("F", bound=Callable[..., Any])

# One transaction replays or drops at most so many, so that workers never wait for an operator.
_STEP = 100


@click.group(cls=Group)
def dlq() -> None:
    """List, show, replay and drop dead letters.

    A dead letter is a message that ended without success and can be tried again: its task failed for
    good, was rejected, crashed its worker too often, is not known, or its body cannot be read.
    """


def _filters(command: F) -> F:
    for option in (
        click.option("--reason", metavar="TEXT", help="Only those of this reason."),
        click.option("--task", metavar="NAME", help="Only those of this task."),
        click.option("--queue", metavar="NAME", help="Only those of this queue."),
    ):
        command = option(command)
    return command


def _choice(command: F) -> F:
    for option in (
        _filters,
        click.option("--all", "everything", is_flag=True, help="All of them, or all that match."),
        click.argument("keys", nargs=-1, metavar="[NUMBER|ID]..."),
    ):
        command = option(command)
    return command


def _matching(
    operators: Operators, queue: str | None, task: str | None, reason: str | None, after: int = 0
) -> Iterator[DeadLetter]:
    while page := operators.dead_letters(queue=queue, after=after, limit=_STEP):
        after = page[-1].number
        for letter in page:
            if task in (None, letter.message.task) and reason in (None, letter.reason):
                yield letter


def _chosen(
    session: Session,
    keys: tuple[str, ...],
    everything: bool,
    queue: str | None,
    task: str | None,
    reason: str | None,
) -> tuple[list[int], bool]:
    """The numbers meant, and whether there is one for every name given.

    `UsageError` when none are named, or both kinds of naming are mixed.
    """
    if everything == bool(keys):
        raise click.UsageError("name dead letters by number or task id, or give --all; not both.")
    operators = session.transport.operators
    if everything:
        found = [letter.number for letter in _matching(operators, queue, task, reason)]
        _note_no_such_queue(session, queue, bool(found))
        return found, True
    if queue or task or reason:
        raise click.UsageError(
            "--queue, --task and --reason narrow --all; the named ones are exact."
        )
    letters = [operators.dead_letter(key) for key in keys]
    for key, letter in zip(keys, letters, strict=True):
        if letter is None:
            complain(f"there is no dead letter {key}")
    return list(dict.fromkeys(one.number for one in letters if one)), None not in letters


def _note_no_such_queue(session: Session, queue: str | None, found: bool) -> None:
    """Point out a queue nobody knows, where it has no dead letters either."""
    if queue is not None and not found:
        note_unknown_queues(session, [queue])


@dlq.command("list")
@_filters
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many."
)
@click.option(
    "--after", type=click.IntRange(0), default=0, metavar="NUMBER", help="Go on from this number."
)
@json_option
@click.pass_context
def list_(
    ctx: click.Context,
    queue: str | None,
    task: str | None,
    reason: str | None,
    limit: int,
    after: int,
    as_json: bool,
) -> None:
    """List dead letters, oldest first."""
    session = Session.of(ctx)
    transport = session.transport
    found = _matching(transport.operators, queue, task, reason, after)
    letters = [letter for _, letter in zip(range(limit + 1), found, strict=False)]
    page = letters[:limit]
    _note_no_such_queue(session, queue, bool(page))
    if as_json:
        show_json([view.as_json(letter) for letter in page])
        return
    show_table(view.lines(page, transport.clock.now(), columns()))
    if len(letters) > limit:
        note(f"there are more: --after {page[-1].number}")


@dlq.command("show")
@click.argument("key", metavar="NUMBER|ID")
@json_option
@click.pass_context
def show_one(ctx: click.Context, key: str, as_json: bool) -> int:
    """Show one dead letter in full.

    Its arguments, its reason and the last traceback.
    """
    session = Session.of(ctx)
    transport = session.transport
    letter = transport.operators.dead_letter(key)
    if letter is None:
        complain(f"there is no dead letter {key}")
        return FAILED
    record = session.results.get(letter.message.task_id)
    traceback = record.traceback if record else None
    state = str(record.state) if record else ""
    if as_json:
        show_json(view.as_json(letter, full=True) | {"state": state, "traceback": traceback})
    else:
        show(view.details(letter, transport.clock.now(), state=state, traceback=traceback))
    return 0


@dlq.command()
@_choice
@priority_option("Queue them at this priority; without it each keeps its own.")
@json_option
@click.pass_context
def replay(
    ctx: click.Context,
    keys: tuple[str, ...],
    everything: bool,
    queue: str | None,
    task: str | None,
    reason: str | None,
    priority: int | None,
    as_json: bool,
) -> int:
    """Queue dead letters again.

    Each keeps its task id and its priority (P7), takes a new place at the end of its band, and starts
    with no deliveries. `taskmq dlq replay --all --queue email --priority 0` replays a whole queue.
    """
    session = Session.of(ctx)
    operators = session.transport.operators
    numbers, complete = _chosen(session, keys, everything, queue, task, reason)
    queued = []
    for step in _steps(numbers, "replaying"):
        queued += operators.replay(step, priority=priority)
    if as_json:
        show_json(
            [
                {"task_id": m.task_id, "task": m.task, "queue": m.queue, "priority": m.priority}
                for m in queued
            ]
        )
    elif everything or numbers:
        show([f"replayed {plural(len(queued), 'message')}"])
    return 0 if complete and len(queued) == len(numbers) else FAILED


@dlq.command()
@_choice
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def drop(
    ctx: click.Context,
    keys: tuple[str, ...],
    everything: bool,
    queue: str | None,
    task: str | None,
    reason: str | None,
    yes: bool,
) -> int:
    """Delete dead letters for good."""
    session = Session.of(ctx)
    operators = session.transport.operators
    numbers, complete = _chosen(session, keys, everything, queue, task, reason)
    if not numbers and not everything:
        return FAILED
    if numbers:
        question = f"Delete {plural(len(numbers), 'dead letter')} for good?"
        confirm(question, sure=yes, flag="--yes")
    dropped = sum(operators.drop(step) for step in _steps(numbers, "dropping"))
    show([f"dropped {plural(dropped, 'dead letter')}"])
    return 0 if complete else FAILED


def _steps(numbers: list[int], label: str) -> Iterator[list[int]]:
    """The numbers in steps of one transaction each, with a bar when there are several."""
    if len(numbers) <= _STEP:
        if numbers:
            yield numbers
        return
    with Progress(label, len(numbers)) as bar:
        for start in range(0, len(numbers), _STEP):
            step = numbers[start : start + _STEP]
            yield step
            bar.advance(len(step))
