"""Values the views are tested with."""

from __future__ import annotations

from typing import Any

from taskmq.coordination.base import WorkerInfo
from taskmq.message import Message
from taskmq.states import State
from taskmq.transports.operators import Found

NOW = 1_900_000_000.0


def message(**changes: Any) -> Message:
    values: dict[str, Any] = {
        "message_id": "m1",
        "task_id": "t1",
        "task": "shop.send",
        "queue": "email",
        "body": b'[["a@b.com"], {"copy": true}, {}]',
    }
    return Message(**values | changes)


def found(**changes: Any) -> Found:
    values: dict[str, Any] = {
        "message": message(),
        "state": State.QUEUED,
        "seq": 1,
        "visible_at": NOW - 10,
    }
    return Found(**values | changes)


def worker(**changes: Any) -> WorkerInfo:
    values: dict[str, Any] = {
        "name": "w1",
        "pid": 42,
        "host": "box",
        "queues": ("default", "email"),
        "slots": 2,
        "free_slots": 0,
        "started_at": NOW - 3600,
        "seen_at": NOW - 1,
        "last_poll_at": NOW - 0.2,
    }
    return WorkerInfo(**values | changes)
