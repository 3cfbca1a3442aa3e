"""From Celery's envelope to a message: every header has its type, or the message says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Literal, NoReturn, overload

from taskmq import ids
from taskmq.codec.bodies import decode_json, encode_json
from taskmq.codec.values import MAX_FOLLOW_DEPTH, read_datetime
from taskmq.errors import DecodeError, EncodeError
from taskmq.message import JSON, LAST_MOMENT, MAX_COUNT, MAX_NAME, ConcurrencyKey, Message, Rate
from taskmq.printable import printable
from taskmq.priority import MAX_PRIORITY, MIN_PRIORITY
from taskmq.states import AckMode
from taskmq.wire.fields import FIELDS, PLAIN, REPLY_TO, Scale, project_priority


def from_protocol2(
    headers: Mapping[str, Any],
    properties: Mapping[str, Any],
    body: bytes,
    *,
    queue: str,
    scale: Scale = "amqp",
    ack: AckMode = AckMode.ON_FINISH,
    max_deliveries: int = 5,
) -> Message:
    """The message of an envelope; its body stays as it is.

    `ack` and `max_deliveries` are for messages that say nothing of them. A wire priority is read as kombu
    reads it, never refused. Raises `DecodeError` naming the header, what is accepted and the value.
    """
    read = _Reader(headers)
    task = read.text("task", needed=True)
    if printable(task) != task:
        read.wrong("task", "text without control characters")
    task_id = read.text("id", needed=True)
    hard, soft = read.limits()
    return Message(
        message_id=read.text("taskmq-message-id") or _own_id(properties),
        task_id=task_id,
        task=task,
        queue=queue,
        body=body,
        priority=read.priority(properties.get("priority"), scale),
        content_type=_property(properties, "content_type", JSON),
        content_encoding=_property(properties, "content_encoding", "utf-8"),
        eta=read.moment("eta"),
        expires_at=read.moment("expires"),
        max_deliveries=read.count("taskmq-max-deliveries", max_deliveries, low=1),
        ack=read.ack(ack),
        retries=read.count("retries", 0),
        time_limit=hard,
        soft_time_limit=soft,
        rate=read.rate(),
        concurrency=read.concurrency(),
        follow=read.follow(),
        parent_id=read.text("parent_id"),
        root_id=read.text("root_id"),
        store_result=not read.flag("ignore_result"),
        result_expires=read.seconds("taskmq-result-expires"),
        headers=read.others(properties),
    )


def _property(properties: Mapping[str, Any], name: str, default: str) -> str:
    value = properties.get(name)
    if value is None or value == "":
        return default
    if not _is_name(value):
        raise DecodeError(
            f"property {name!r}: text of 1 to {MAX_NAME} characters, got {_short(value)}"
        )
    return str(value)


def _own_id(properties: Mapping[str, Any]) -> str:
    """An id for a message whose producer made none: the broker's, else a new one.

    Never the task id: Celery may have two messages of one task.
    """
    for name in ("message_id", "delivery_tag"):
        value = properties.get(name)
        if _is_name(value):
            return str(value)
    return ids.ulid()


def _short(value: Any) -> str:
    return f"{ascii(value)[:80]} ({type(value).__name__})"


class _Reader:
    """Headers, each with its type or a `DecodeError`. None counts as left out."""

    def __init__(self, headers: Mapping[str, Any]) -> None:
        self._headers = headers

    def wrong(self, name: str, accepted: str) -> NoReturn:
        raise DecodeError(f"header {name!r}: {accepted}, got {_short(self._headers.get(name))}")

    @overload
    def text(self, name: str, *, needed: Literal[True]) -> str: ...

    @overload
    def text(self, name: str, *, needed: bool = False) -> str | None: ...

    def text(self, name: str, *, needed: bool = False) -> str | None:
        value = self._headers.get(name)
        if value is None and not needed:
            return None
        if not _is_name(value):
            self.wrong(name, f"text of 1 to {MAX_NAME} characters")
        return str(value)

    def flag(self, name: str) -> bool:
        value = self._headers.get(name)
        if value is not None and not isinstance(value, bool):
            self.wrong(name, "true or false")
        return bool(value)

    def count(self, name: str, default: int, *, low: int = 0) -> int:
        value = self._headers.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= MAX_COUNT:
            self.wrong(name, f"an int from {low} to {MAX_COUNT}")
        return int(value)

    def seconds(self, name: str) -> float | None:
        value = self._headers.get(name)
        if value is not None and not _is_span(value):
            self.wrong(name, "seconds from 0 or null")
        return value

    def limits(self) -> tuple[float | None, float | None]:
        """The hard and the soft limit; 0 is none, as in Celery."""
        pair = self._headers.get("timelimit")
        if pair is None:
            return None, None
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            self.wrong("timelimit", "[hard, soft] in seconds or null")
        if any(limit is not None and not _is_span(limit) for limit in pair):
            self.wrong("timelimit", "[hard, soft] in seconds or null")
        return pair[0] or None, pair[1] or None

    def moment(self, name: str) -> float | None:
        value = self._headers.get(name)
        if value is None:
            return None
        try:
            moment = read_datetime(value)
            # Celery writes UTC; a time without an offset is one.
            at = (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
            # At the calendar's ends an offset leads out of it: such a time could not be written again.
            datetime.fromtimestamp(at, timezone.utc)
            return at
        except (ValueError, TypeError, AttributeError, OverflowError, OSError):
            self.wrong(name, "ISO 8601 text or null")

    def priority(self, on_the_wire: Any, scale: Scale) -> int:
        exact = self._headers.get("taskmq-priority")
        if exact is not None and (
            type(exact) is not int or not MIN_PRIORITY <= exact <= MAX_PRIORITY
        ):
            self.wrong("taskmq-priority", f"an int from {MIN_PRIORITY} to {MAX_PRIORITY}")
        try:
            seen = int(on_the_wire or 0)
        except (ValueError, TypeError, OverflowError):
            seen = 0
        if exact is not None and project_priority(exact, scale) == seen:
            return exact
        level = min(max(seen, 0), MAX_PRIORITY)
        return level if scale == "amqp" else -level

    def ack(self, default: AckMode) -> AckMode:
        value = self._headers.get("taskmq-ack")
        if value is None:
            return default
        try:
            return AckMode(value)
        except ValueError:
            self.wrong("taskmq-ack", f"one of {', '.join(AckMode)}")

    def rate(self) -> Rate | None:
        pair = self._pair("taskmq-rate", "[key, seconds between two starts]")
        if pair is None:
            return None
        if not _is_span(pair[1]) or not pair[1]:
            self.wrong("taskmq-rate", "[key, seconds between two starts]")
        return Rate(pair[0], float(pair[1]))

    def concurrency(self) -> ConcurrencyKey | None:
        pair = self._pair("taskmq-concurrency", "[key, an int from 1]")
        if pair is None:
            return None
        if type(pair[1]) is not int or not 1 <= pair[1] <= MAX_COUNT:
            self.wrong("taskmq-concurrency", f"[key, an int from 1 to {MAX_COUNT}]")
        return ConcurrencyKey(pair[0], pair[1])

    def follow(self) -> str | None:
        text = self._headers.get("taskmq-follow")
        if text is None:
            return None
        try:
            value = decode_json(text, max_depth=MAX_FOLLOW_DEPTH) if isinstance(text, str) else None
        except DecodeError:
            value = None
        if not isinstance(value, dict):
            self.wrong("taskmq-follow", "a JSON object as text")
        return str(text)

    def others(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Every header that is no field, as JSON values: what a store can keep."""
        kept: dict[str, Any] = {}
        for name, value in self._headers.items():
            if not isinstance(name, str):
                raise DecodeError(f"a header's name is text, got {_short(name)}")
            if name in FIELDS or (name in PLAIN and value == PLAIN[name]):
                continue
            try:
                # AMQP carries times and bytes, which arrive here as objects.
                kept[name] = decode_json(encode_json(value, name))
            except (EncodeError, DecodeError):
                self.wrong(name, "JSON values")
        reply_to = properties.get("reply_to")
        if isinstance(reply_to, str) and reply_to and _storable(reply_to):
            kept[REPLY_TO] = reply_to
        return kept

    def _pair(self, name: str, accepted: str) -> tuple[str, Any] | None:
        value = self._headers.get(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            self.wrong(name, accepted)
        if not _is_name(value[0]):
            self.wrong(name, accepted)
        return value[0], value[1]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and _storable(value)


def _is_span(value: Any) -> bool:
    # The bound also refuses NaN, infinity and ints no float can hold.
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 <= value <= LAST_MOMENT
    )


def _storable(text: str) -> bool:
    """Whether every store keeps this text as it is."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\x00" not in text
