"""Bodies that are larger than `max_body`: named once, the same on every transport. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from taskmq.errors import TooLarge
from taskmq.message import Message, ResultRecord
from taskmq.policy.following import ChordPart, Consequence


def too_large(body: bytes | None, limit: int, what: str) -> TooLarge | None:
    """The error for a body above `limit` bytes, or None."""
    if body is None or len(body) <= limit:
        return None
    return TooLarge(f"{what} has {len(body)} bytes, max_body is {limit}")


def check_bodies(messages: Sequence[Message], limit: int) -> None:
    """Raise `TooLarge` for the first message whose body is above `limit` bytes."""
    for message in messages:
        fault = too_large(message.body, limit, f"the body of {message.task} {message.task_id}")
        if fault is not None:
            raise fault


def oversized(
    message: Message,
    *,
    result: ResultRecord | None,
    then: Consequence,
    body: bytes | None,
    limit: int,
) -> TooLarge | None:
    """What is too large to store in an outcome of `message`: its result, new body or what follows."""
    name = f"{message.task} {message.task_id}"
    if result is not None and (fault := too_large(result.body, limit, f"the result of {name}")):
        return fault
    if fault := too_large(body, limit, f"the body of {name}"):
        return fault
    for following in then.submits:
        what = f"the body of {following.task}, which follows {name},"
        if fault := too_large(following.body, limit, what):
            return fault
    for move in then.chords:
        if isinstance(move, ChordPart) and (
            fault := too_large(move.part, limit, f"the chord part of {name}")
        ):
            return fault
    return None
