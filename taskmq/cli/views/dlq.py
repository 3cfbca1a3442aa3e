"""`taskmq dlq list` and `show`: what died, why, and what it was called with. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from taskmq.cli.text import duration, moment, printable_lines, size, table
from taskmq.message import JSON, DeadLetter, Message
from taskmq.printable import printable


def lines(letters: Sequence[DeadLetter], now: float, columns: int | None = None) -> list[str]:
    """One line per dead letter, oldest first; two where a terminal is too narrow."""
    if not letters:
        return ["no dead letters"]
    return table(
        ["NUMBER", "DIED", "PRIORITY", "QUEUE", "TASK", "REASON", "ERROR", "ID"],
        [
            (
                letter.number,
                duration(now - letter.died_at) + " ago",
                f"P{letter.message.priority}",
                letter.message.queue,
                letter.message.task,
                letter.reason,
                letter.error,
                letter.message.task_id,
            )
            for letter in letters
        ],
        align=">>><<<<<",
        columns=columns,
        elastic=(6, 4, 5),
        below=(7, 6),
    )


def arguments(message: Message) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a JSON body, None for anything else: nothing else is decoded to be looked at."""
    if message.content_type != JSON:
        return None
    try:
        body = json.loads(message.body)
        args, kwargs = body[0], body[1]
    except (ValueError, TypeError, IndexError, KeyError):
        return None
    return (args, kwargs) if isinstance(args, list) and isinstance(kwargs, dict) else None


def details(
    letter: DeadLetter, now: float, *, state: str = "", traceback: str | None = None
) -> list[str]:
    """Everything of one dead letter."""
    message = letter.message
    call = arguments(message)
    if call is None:
        body = f"{size(len(message.body))} of {message.content_type}, not readable here"
    else:
        shown = [json.dumps(value, ensure_ascii=False) for value in call[0]]
        shown += [f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in call[1].items()]
        # As a call is written: a tuple of one keeps its comma.
        body = f"({shown[0]},)" if len(shown) == 1 and not call[1] else f"({', '.join(shown)})"
    rows = [
        ("number", letter.number),
        ("task", message.task),
        ("arguments", body),
        ("reason", letter.reason),
        ("error", letter.error or "-"),
        ("died", f"{moment(letter.died_at, now)}, {duration(now - letter.died_at)} ago"),
        ("task id", message.task_id),
        ("queue", message.queue),
        ("priority", f"P{message.priority}"),
        ("retries", message.retries),
        ("deliveries", f"{letter.deliveries} of {message.max_deliveries}"),
        ("yields", letter.yields),
        ("result", state or "-"),
        ("replay", f"taskmq dlq replay {letter.number}"),
    ]
    said = [f"{name:<11} {printable(str(value))}" for name, value in rows]
    if traceback:
        said += ["", *printable_lines(traceback)]
    return said


def as_json(letter: DeadLetter, *, full: bool = False) -> dict[str, Any]:
    """The same for programs; `full` adds the arguments and what belongs to the message."""
    message = letter.message
    answer: dict[str, Any] = {
        "number": letter.number,
        "task_id": message.task_id,
        "task": message.task,
        "queue": message.queue,
        "priority": message.priority,
        "reason": letter.reason,
        "error": letter.error,
        "died_at": letter.died_at,
        "deliveries": letter.deliveries,
        "yields": letter.yields,
    }
    if full:
        call = arguments(message)
        answer |= {
            "args": call[0] if call else None,
            "kwargs": call[1] if call else None,
            "readable": call is not None,
            "content_type": message.content_type,
            "size": len(message.body),
            "retries": message.retries,
            "max_deliveries": message.max_deliveries,
            "eta": message.eta,
            "expires_at": message.expires_at,
            "parent_id": message.parent_id,
            "root_id": message.root_id,
        }
    return answer
