"""What no transport stores: too large, or out of range. Named once, the same on every transport. Pure.

The app checks what a caller hands in; this is the last look before anything is stored, so that nothing
gets in that a worker could not take out again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from taskmq.errors import EncodeError, PriorityError, TaskMQError, TooLarge
from taskmq.message import MAX_NAME, Message, ResultRecord
from taskmq.policy.following import ChordPart, Consequence
from taskmq.priority import check_priority

_NAMES = ("message_id", "task_id", "task", "queue", "parent_id", "root_id")


def too_large(body: bytes | None, limit: int, what: str) -> TooLarge | None:
    """The error for a body above `limit` bytes, or None."""
    if body is None or len(body) <= limit:
        return None
    return TooLarge(f"{what} has {len(body)} bytes, max_body is {limit}")


def check_messages(messages: Sequence[Message], limit: int) -> None:
    """Raise `TooLarge` or `PriorityError` for the first message that must not be stored.

    `limit` counts the bytes of body, headers and follow-ups (links, the rest of a chain, a chord's
    body) together; ids and names have at most 255 characters.
    """
    for message in messages:
        fault = message_fault(message, limit)
        if fault is not None:
            raise fault


def message_fault(message: Message, limit: int, where: str = "") -> TaskMQError | None:
    """Why a message must not be stored, or None; `where` says what it has to do with another."""
    # The common case is paid by every submit: a few comparisons.
    if type(message.priority) is not int or not -9 <= message.priority <= 9:
        try:
            check_priority(message.priority, f"{message.task:.80} {message.task_id:.80}")
        except PriorityError as exc:
            return exc
    for name in _NAMES:
        value = getattr(message, name)
        if value is not None and len(value) > MAX_NAME:
            return TooLarge(
                f"{name} {value[:32]!r}… has {len(value)} characters, at most {MAX_NAME} are accepted"
            )
    if message.follow is None and not message.headers and message.concurrency is None:
        return too_large(message.body, limit, f"the body of {_said(message)}{where}")
    return _envelope_fault(message, limit, where)


def _envelope_fault(message: Message, limit: int, where: str) -> TooLarge | None:
    parts = {"body": len(message.body)}
    if message.headers:
        parts["headers"] = len(json.dumps(dict(message.headers), default=str))
    if message.follow is not None:
        parts["follow-ups"] = len(message.follow.encode("utf-8", "surrogatepass"))
    if message.concurrency is not None:
        parts["concurrency key"] = len(message.concurrency.key)
    total = sum(parts.values())
    if total <= limit:
        return None
    # Headers are nearly always there, and of no size: the largest part is what to look at.
    largest = max(parts, key=lambda part: parts[part])
    rest = ", ".join(f"{part} {size}" for part, size in parts.items() if size)
    return TooLarge(
        f"the {largest} of {_said(message)}{where} has {parts[largest]} bytes, max_body is {limit} "
        f"for all of it together ({rest})"
    )


def _said(message: Message) -> str:
    return f"{message.task} {message.task_id}"


def outcome_fault(
    message: Message,
    *,
    result: ResultRecord | None,
    then: Consequence,
    body: bytes | None,
    priority: int | None,
    delay: float,
    limit: int,
) -> TaskMQError | None:
    """Why an outcome of `message` must not be stored, or None.

    Looks at its result, its new body, priority and delay, and at what follows.
    """
    name = _said(message)
    if result is not None and (fault := too_large(result.body, limit, f"the result of {name}")):
        return fault
    if body is not None and not isinstance(body, bytes):
        return EncodeError(f"{name}: an encoded body is bytes, got {type(body).__name__}")
    if fault := too_large(body, limit, f"the body of {name}"):
        return fault
    if priority is not None:
        try:
            check_priority(priority, f"a retry of {name}")
        except PriorityError as exc:
            return exc
    if not (isinstance(delay, (int, float)) and math.isfinite(delay)):
        return EncodeError(f"{name}: a delay is a number of seconds, got {delay!r:.100}")
    for following in then.submits:
        if odd := message_fault(following, limit, f", which follows {name},"):
            return odd
    for move in then.chords:
        if isinstance(move, ChordPart) and (
            fault := too_large(move.part, limit, f"the chord part of {name}")
        ):
            return fault
    return None
