"""A message as a row and back, and the row that says where it waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from taskmq.errors import EncodeError
from taskmq.message import JSON, MAX_COUNT, ConcurrencyKey, Message, Rate
from taskmq.states import AckMode
from taskmq.transports.sqlite.mending import Malformed, check, mended, read_meta
from taskmq.transports.sqlite.times import micros, seconds

# What `to_message` raises for a row that something else wrote.
UNREADABLE = (LookupError, TypeError, ValueError)

_ACK = {mode.value: mode for mode in AckMode}

# The columns a Message is read from, after `m.` and in the order `to_message` takes them.
MESSAGE_COLUMNS = (
    "message_id, task_id, task, lane, npri, expires_at, max_deliveries, ack, retries, rate_interval, "
    "key, key_limit, follow, body, meta"
)
# What `encode` gives, in order; the write transaction adds sequence, lane and times.
ENCODED_COLUMNS = (
    "message_id, task_id, task, npri, expires_at, max_deliveries, ack, retries, rate_interval, "
    "key, key_limit, follow, body, meta"
)
M_COLUMNS = ", ".join("m." + name.strip() for name in MESSAGE_COLUMNS.split(","))


class Place(NamedTuple):
    """Where a message waits and what a delivery of it carries along; the columns of the key tables."""

    seq: int
    lane: int
    npri: int
    visible_at: int
    deliveries: int
    yields: int
    yieldable: int
    expires_at: int | None
    keyed: int

    @property
    def sound(self) -> bool:
        """Whether its numbers are numbers: the file enforces no types."""
        return (
            type(self.deliveries) is int
            and type(self.visible_at) is int
            and (self.expires_at is None or type(self.expires_at) is int)
            and type(self.yields) is int
        )


PLACE_COLUMNS = ", ".join(Place._fields)


class Encoded(NamedTuple):
    """A message ready to be inserted: all but what the write transaction gives it."""

    message: Message
    columns: tuple[Any, ...]
    npri: int
    eta: int | None
    expires_at: int | None


def encode(message: Message) -> Encoded:
    """Outside the transaction, so that a bad value costs nobody else anything. Raises `EncodeError`."""
    expires_at = None if message.expires_at is None else micros(message.expires_at)
    npri = -message.priority
    rate = message.rate
    key = message.concurrency
    task_id = message.task_id
    return Encoded(
        message,
        (
            message.message_id,
            None if task_id == message.message_id else task_id,
            message.task,
            npri,
            expires_at,
            message.max_deliveries,
            message.ack.value,
            message.retries,
            None if rate is None else rate.interval,
            None if key is None else key.key,
            None if key is None else key.limit,
            message.follow,
            message.body,
            _meta(message),
        ),
        npri,
        None if message.eta is None else micros(message.eta),
        expires_at,
    )


def _meta(message: Message) -> str | None:
    meta: dict[str, Any] = {}
    if message.content_type != JSON:
        meta["content_type"] = message.content_type
    if message.content_encoding != "utf-8":
        meta["content_encoding"] = message.content_encoding
    if message.eta is not None:
        meta["eta"] = message.eta
    if message.time_limit is not None:
        meta["time_limit"] = message.time_limit
    if message.soft_time_limit is not None:
        meta["soft_time_limit"] = message.soft_time_limit
    if message.parent_id is not None:
        meta["parent_id"] = message.parent_id
    if message.root_id != message.task_id:
        # A task of its own is its own root, which is nearly every message.
        meta["root_id"] = message.root_id
    if not message.store_result:
        meta["store_result"] = False
    if message.result_expires is not None:
        meta["result_expires"] = message.result_expires
    if message.headers:
        meta["headers"] = dict(message.headers)
    return dump(meta, f"the headers of {message.task} {message.task_id}") if meta else None


def dump(value: Any, what: str) -> str:
    """JSON text; `EncodeError` naming what cannot be written."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise EncodeError(f"{what} cannot be written as JSON: {exc}") from exc


def to_message(row: Sequence[Any], lane: Callable[[int], tuple[str, str | None]]) -> Message:
    """The message of `MESSAGE_COLUMNS`; `lane` gives the queue and the rate key of a lane.

    Raises `Malformed` for columns of other types than ours, another of `UNREADABLE` for what a newer
    version may have written.
    """
    (
        message_id,
        task_id,
        task,
        lane_id,
        npri,
        expires_at,
        max_deliveries,
        ack,
        retries,
        rate_interval,
        key,
        key_limit,
        follow,
        body,
        meta,
    ) = row
    if not (
        # `check` says the same column by column; this is what every reserve pays for (0.3 us).
        type(body) is bytes
        and type(message_id) is str
        and type(task) is str
        and type(ack) is str
        and type(npri) is int
        and type(retries) is int
        and 0 <= retries <= MAX_COUNT
        and type(max_deliveries) is int
        and 0 < max_deliveries <= MAX_COUNT
        and -9 <= npri <= 9
        and (task_id is None or type(task_id) is str)
        and expires_at is key is rate_interval is follow is None
    ):
        check(row)
    try:
        queue, rate_key = lane(lane_id)
    except KeyError:
        raise Malformed(
            f"its column lane holds {lane_id!a:.80}, and there is no such lane"
        ) from None
    if task_id is None:
        task_id = message_id
    if rate_key is not None and rate_interval is None:
        raise Malformed("its column rate_interval is empty, and it is in the lane of a rate limit")
    more = {} if meta is None else read_meta(meta)
    more.setdefault("root_id", task_id)
    if "headers" in more:
        more["headers"] = MappingProxyType(more["headers"])
    return Message(
        message_id=message_id,
        task_id=task_id,
        task=task,
        queue=queue,
        body=body,
        priority=-npri,
        expires_at=seconds(expires_at),
        max_deliveries=max_deliveries,
        ack=_ACK[ack],
        retries=retries,
        rate=None if rate_key is None else Rate(rate_key, rate_interval),
        concurrency=None if key is None else ConcurrencyKey(key, key_limit),
        follow=follow,
        **more,
    )


def salvage(row: Sequence[Any], lane: Callable[[int], tuple[str, str | None]]) -> Message:
    """The message that is left of a malformed row; its queue is empty where its lane is not known."""

    def known(number: int) -> tuple[str, str | None]:
        try:
            return lane(number)
        except KeyError:
            return "", None

    return to_message(mended(row), known)
