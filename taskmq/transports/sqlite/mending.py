"""Rows that something else wrote: whether a message's columns are what they must be, and what is left of it.

Anybody who may write to the file may write anything into a column, for SQLite enforces no types. A row
that names what a newer version may know (another `ack`, another field) is not malformed: it waits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from taskmq.message import LAST_MOMENT, MAX_COUNT
from taskmq.priority import MAX_PRIORITY, MIN_PRIORITY

_TEXT_OR_NULL = (str, type(None))


class Malformed(ValueError):
    """A column holds what no version writes there; the text names the column and the value."""


def check(row: Sequence[Any]) -> None:
    """Raise `Malformed` for a row of `rows.MESSAGE_COLUMNS` that cannot be a message.

    `meta` is left to `read_meta`.
    """
    for name, value, sound in _each(row):
        if not sound:
            raise Malformed(_said(name, value))


def read_meta(text: Any) -> dict[str, Any]:
    """The fields that differ from their defaults. Raises `Malformed`; fields not known here are kept."""
    meta = _parse(text)
    for name, value in meta.items():
        sound = _FIELDS.get(name)
        if sound is not None and not sound(value):
            raise Malformed(_said(f"meta.{name}", value))
    return meta


def mended(row: Sequence[Any]) -> list[Any]:
    """The columns with what can be kept of them: ids, name and body before all, for a dead letter."""
    bad = {name for name, _, sound in _each(row) if not sound}
    message_id, task_id, task, lane, own, expires_at, most, ack, retries, interval = row[:10]
    key, limit, follow, body, meta = row[10:]
    if "key" in bad:
        key = None
    return [
        _text(message_id),
        None if task_id is None else _text(task_id),
        _text(task),
        lane,
        0 if "npri" in bad else own,
        None if "expires_at" in bad else expires_at,
        1 if "max_deliveries" in bad else most,
        "on_finish" if "ack" in bad else ack,
        0 if "retries" in bad else retries,
        # Of a rate limit it only counts that there is one: what is malformed never starts.
        1.0 if interval is None or "rate_interval" in bad else interval,
        key,
        None if key is None else 1 if "key_limit" in bad else limit,
        None if "follow" in bad else follow,
        body if type(body) is bytes else _text(body).encode(),
        _sound_meta(meta),
    ]


def _each(row: Sequence[Any]) -> list[tuple[str, Any, bool]]:
    (
        message_id,
        task_id,
        task,
        _,
        npri,
        expires_at,
        max_deliveries,
        ack,
        retries,
        interval,
        key,
        key_limit,
        follow,
        body,
        _,
    ) = row
    return [
        ("message_id", message_id, type(message_id) is str),
        ("task_id", task_id, type(task_id) in _TEXT_OR_NULL),
        ("task", task, type(task) is str),
        ("npri", npri, type(npri) is int and MIN_PRIORITY <= npri <= MAX_PRIORITY),
        ("expires_at", expires_at, expires_at is None or _is_time(expires_at)),
        ("max_deliveries", max_deliveries, _is_count(max_deliveries) and max_deliveries > 0),
        ("ack", ack, type(ack) is str),
        ("retries", retries, _is_count(retries)),
        ("rate_interval", interval, interval is None or (_is_span(interval) and interval > 0)),
        ("key", key, type(key) in _TEXT_OR_NULL),
        ("key_limit", key_limit, key is None or (_is_count(key_limit) and key_limit > 0)),
        ("follow", follow, type(follow) in _TEXT_OR_NULL),
        ("body", body, type(body) is bytes),
    ]


def _parse(text: Any) -> dict[str, Any]:
    try:
        meta = json.loads(text) if type(text) is str else None
    except (ValueError, RecursionError):
        meta = None
    if type(meta) is not dict:
        raise Malformed(_said("meta", text))
    return meta


def _sound_meta(text: Any) -> str | None:
    try:
        meta = {} if text is None else _parse(text)
    except Malformed:
        return None
    kept = {name: v for name, v in meta.items() if name in _FIELDS and _FIELDS[name](v)}
    return json.dumps(kept, separators=(",", ":")) if kept else None


def _said(name: str, value: Any) -> str:
    return f"its column {name} holds {ascii(value)[:80]} ({type(value).__name__})"


def _text(value: Any) -> str:
    """What can be read of a text: a column of another type holds bytes, or a number."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_COUNT


def _is_time(value: Any) -> bool:
    """Microseconds that a datetime can name."""
    return type(value) is int and abs(value) <= LAST_MOMENT * 1_000_000


def _is_span(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= LAST_MOMENT


def _is_moment(value: Any) -> bool:
    return type(value) in (int, float) and -LAST_MOMENT <= value <= LAST_MOMENT


def _is_text(value: Any) -> bool:
    if type(value) is not str:
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "content_type": _is_text,
    "content_encoding": _is_text,
    "eta": _is_moment,
    "time_limit": _is_span,
    "soft_time_limit": _is_span,
    "parent_id": _is_text,
    "root_id": lambda value: value is None or _is_text(value),
    "store_result": lambda value: type(value) is bool,
    "result_expires": _is_span,
    "headers": lambda value: type(value) is dict,
}
