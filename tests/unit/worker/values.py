"""Messages, deliveries and completions for tests of the worker's parts."""

from __future__ import annotations

import itertools
from typing import Any

from taskmq.message import Delivery, Message
from taskmq.pools.base import Completion, Ending

_numbers = itertools.count(1)


def message(**changes: Any) -> Message:
    number = next(_numbers)
    fields: dict[str, Any] = {
        "message_id": f"m{number}",
        "task_id": f"t{number}",
        "task": "jobs.work",
        "queue": "default",
        "body": b"[[],{},null]",
    }
    return Message(**{**fields, **changes})


def delivery(priority: int = 0, *, seq: int | None = None, **changes: Any) -> Delivery:
    own = {
        name: changes.pop(name)
        for name in ("deliveries", "started", "yieldable", "token", "visible_at")
        if name in changes
    }
    number = next(_numbers) if seq is None else seq
    return Delivery(
        message=message(priority=priority, **changes),
        seq=number,
        effective=priority,
        lease_until=1e12,
        **{"token": 7, "visible_at": 0.0, "started": True, **own},
    )


def completion(ending: Ending, **changes: Any) -> Completion:
    return Completion(**{"number": 1, "ending": ending, **changes})
