"""What both directions know of the envelope: which headers are fields, and the scale of priorities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

#: Which end of Celery's 0..9 is urgent: 9 on AMQP, 0 on kombu's Redis.
Scale = Literal["amqp", "redis"]

#: Where the property `reply_to` is kept among a message's headers.
REPLY_TO = "taskmq-reply-to"

#: Headers every Celery message has; left out of `Message.headers` where they say nothing.
PLAIN: Mapping[str, Any] = {
    "lang": "py",
    "shadow": None,
    "group": None,
    "group_index": None,
    "replaced_task_nesting": 0,
    "stamped_headers": None,
    "stamps": {},
}

#: Headers that are fields of `Message`.
FIELDS = frozenset(
    {
        "task",
        "id",
        "eta",
        "expires",
        "retries",
        "timelimit",
        "root_id",
        "parent_id",
        "ignore_result",
        "taskmq-priority",
        "taskmq-message-id",
        "taskmq-max-deliveries",
        "taskmq-ack",
        "taskmq-rate",
        "taskmq-concurrency",
        "taskmq-result-expires",
        "taskmq-follow",
    }
)


def project_priority(priority: int, scale: Scale) -> int:
    """The 0..9 that a broker and Celery's workers see of a -9..9.

    0 stays 0, Celery's own default on both; ten of the nineteen levels share it.
    """
    return max(priority if scale == "amqp" else -priority, 0)
