"""A protocol-2 envelope to read, with whatever a test changes in it."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

from taskmq.codec import Codec
from taskmq.message import Message
from taskmq.wire import Scale, from_protocol2

QUICK = settings(max_examples=100, deadline=None)
SCALES: list[Scale] = ["amqp", "redis"]
BODY = Codec().encode_body((1,), {})[0]
HEADERS = {"task": "a", "id": "t"}
PROPERTIES = {"content_type": "application/json", "content_encoding": "utf-8", "priority": 0}


def read(headers: Any = None, properties: Any = None, *, scale: Scale = "amqp") -> Message:
    """The message of the envelope with these headers and properties."""
    return from_protocol2(
        {**HEADERS, **(headers or {})},
        {**PROPERTIES, **(properties or {})},
        BODY,
        queue="q",
        scale=scale,
    )
