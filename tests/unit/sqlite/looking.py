"""What is in a store, in the order it would be taken."""

from __future__ import annotations

from taskmq.transports.base import QueueShare
from taskmq.transports.sqlite import SQLiteTransport

Q = (QueueShare("q"),)


def ids(transport: SQLiteTransport) -> list[str]:
    return [peeked.message.task_id for peeked in transport.operators.peek(Q, 100)]
