"""From a message to Celery's envelope."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from taskmq.codec.bodies import NO_EMBED, decode_json, encode_json
from taskmq.codec.values import MAX_FOLLOW_DEPTH
from taskmq.message import JSON, Message
from taskmq.wire.fields import PLAIN, REPLY_TO, Scale, project_priority

_TAIL = b"," + NO_EMBED + b"]"


def to_protocol2(
    message: Message, *, scale: Scale = "amqp"
) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """(headers, properties, body) for kombu's `publish`.

    What follows the task is written into the body too, so that a Celery worker goes on with a chain. AMQP's
    `expiration` is never set: a broker drops such a message without a result.
    """
    kept = dict(message.headers)
    reply_to = kept.pop(REPLY_TO, None)
    headers: dict[str, Any] = {
        **PLAIN,
        **kept,
        "task": message.task,
        "id": message.task_id,
        "eta": _iso(message.eta),
        "expires": _iso(message.expires_at),
        "retries": message.retries,
        "timelimit": [message.time_limit, message.soft_time_limit],
        "root_id": message.root_id or message.task_id,
        "parent_id": message.parent_id,
        "ignore_result": not message.store_result,
        "taskmq-priority": message.priority,
        "taskmq-message-id": message.message_id,
        "taskmq-max-deliveries": message.max_deliveries,
        "taskmq-ack": message.ack.value,
    }
    if message.rate is not None:
        headers["taskmq-rate"] = list(message.rate)
    if message.concurrency is not None:
        headers["taskmq-concurrency"] = list(message.concurrency)
    if message.result_expires is not None:
        headers["taskmq-result-expires"] = message.result_expires
    body = message.body
    if message.follow is not None:
        headers["taskmq-follow"] = message.follow
        body = _with_embed(message, headers)
    properties: dict[str, Any] = {
        "content_type": message.content_type,
        "content_encoding": message.content_encoding,
        "delivery_mode": 2,
        "priority": project_priority(message.priority, scale),
        "correlation_id": message.task_id,
    }
    if reply_to is not None:
        properties["reply_to"] = reply_to
    return headers, properties, body


def _iso(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, timezone.utc).isoformat()


def _with_embed(message: Message, headers: dict[str, Any]) -> bytes:
    """The body with what follows in its third part, in Celery's form, where that is empty JSON so far."""
    follow = decode_json(message.follow or "{}", max_depth=MAX_FOLLOW_DEPTH)
    chord = follow.get("chord")
    if isinstance(chord, dict) and isinstance(chord.get("body"), dict):
        body = chord["body"]
        headers["group"], headers["group_index"] = chord.get("key"), chord.get("index")
        given = body.get("options")
        # What follows may come from anybody: only its outermost object was checked when it was read.
        options = {**(given if isinstance(given, dict) else {}), "group_id": chord.get("key")}
        chord = {**body, "options": options, "chord_size": chord.get("size")}
    if message.content_type != JSON or not message.body.endswith(_TAIL):
        return message.body
    parts = {name: follow.get(name) or None for name in ("callbacks", "errbacks", "chain")}
    embed = encode_json({**parts, "chord": chord or None}, "follow")
    return message.body[: 1 - len(_TAIL)] + embed.encode() + b"]"
