"""Coverage-guided fuzzing of protocol-2 headers: a message, or a `DecodeError`. See README.md.

The input is read as JSON `[headers, properties]` where it is that, so that a corpus of captured messages
can be mutated; else it steers a builder of headers of any type, NaN, bytes and surrogates included. A
message that is read is written and read again, and stored as SQLite stores it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from typing import Any

import atheris

with atheris.instrument_imports(include=["taskmq"]):
    from taskmq.errors import DecodeError, EncodeError
    from taskmq.message import Message
    from taskmq.policy import following
    from taskmq.states import State
    from taskmq.transports.sqlite.rows import encode
    from taskmq.wire import from_protocol2, to_protocol2
    from taskmq.wire.fields import FIELDS, PLAIN

STORE = sqlite3.connect(":memory:")
NAMES = (*sorted(FIELDS | PLAIN.keys()), "compression", "x-app", "argsrepr")
PROPERTIES = (
    "priority",
    "content_type",
    "content_encoding",
    "message_id",
    "delivery_tag",
    "reply_to",
)
WORDS = (
    "2030-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "late",
    "on_start",
    '{"chain": [{"task": "b"}], "chord": {"key": "k", "index": 1, "size": 2, "body": {"task": "c"}}}',
    '{"chord": {"body": {"options": 5}}}',
    "zlib",
    "a\x00b",
    "\ud800",
)


def one_input(data: bytes) -> None:
    """Fails on anything that is neither a message nor a `DecodeError` that is one printable line."""
    headers, properties = _envelope(data)
    for scale in ("amqp", "redis"):
        try:
            message = from_protocol2(headers, properties, b"[[], {}, {}]", queue="q", scale=scale)
        except DecodeError as exc:
            if not str(exc).isprintable() or len(str(exc)) > 400:
                raise AssertionError(f"an error nobody can print: {exc!a}") from exc
            continue
        _hold_to(message, scale)


def _hold_to(message: Message, scale: Any) -> None:
    if type(message.priority) is not int or not -9 <= message.priority <= 9:
        raise AssertionError(f"priority {message.priority!r}")
    for moment in (message.eta, message.expires_at):
        if moment is not None and type(moment) is not float:
            raise AssertionError(f"a time is {moment!r}")
    _store(message)
    then = following.succeeded(message, b"1", "application/json", now=1.0)
    for step in then.submits:
        _store(step)
    following.ended(message, State.FAILED, b"{}", now=1.0, result_expires=60.0)
    try:
        written = to_protocol2(message, scale=scale)
    except EncodeError:
        return
    json.dumps(written[0], allow_nan=False).encode()
    again = from_protocol2(*written, queue="q", scale=scale)
    if again.task_id != message.task_id or again.eta != message.eta:
        raise AssertionError(f"{message} came back as {again}")


def _store(message: Message) -> None:
    """As SQLite is given it: what does not fit a column raises here."""
    row = encode(message)
    STORE.execute(f"SELECT {', '.join('?' * len(row.columns))}", row.columns).fetchone()
    STORE.execute("SELECT ?, ?, ?, ?", (row.eta, message.queue, message.content_type, row.npri))
    if message.rate is not None:
        STORE.execute("SELECT ?, ?", (message.rate.key, int(message.rate.interval * 1_000_000)))
    if message.result_expires is not None:
        STORE.execute("SELECT ?", (int((time.time() + message.result_expires) * 1_000_000),))


def _envelope(data: bytes) -> tuple[dict[Any, Any], dict[Any, Any]]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, dict) for v in value):
        return value[0], value[1]
    source = atheris.FuzzedDataProvider(data)
    headers: dict[Any, Any] = {"task": "a", "id": "t"}
    properties: dict[Any, Any] = {}
    for _ in range(source.ConsumeIntInRange(1, 5)):
        headers[source.PickValueInList(list(NAMES))] = _value(source, 0)
    for _ in range(source.ConsumeIntInRange(0, 3)):
        properties[source.PickValueInList(list(PROPERTIES))] = _value(source, 0)
    return headers, properties


def _value(source: Any, depth: int) -> Any:
    kind = source.ConsumeIntInRange(0, 9 if depth < 4 else 7)
    if kind == 0:
        return None
    if kind == 1:
        return source.ConsumeBool()
    if kind == 2:
        return source.ConsumeInt(8)
    if kind == 3:
        return source.ConsumeFloat()
    if kind == 4:
        return source.ConsumeUnicode(20)
    if kind == 5:
        return source.ConsumeBytes(10)
    if kind == 6:
        return source.PickValueInList(list(WORDS))
    if kind == 7:
        return source.ConsumeIntInRange(-10, 10)
    if kind == 8:
        return [_value(source, depth + 1) for _ in range(source.ConsumeIntInRange(0, 3))]
    return {
        source.ConsumeUnicodeNoSurrogates(8): _value(source, depth + 1)
        for _ in range(source.ConsumeIntInRange(0, 3))
    }


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
