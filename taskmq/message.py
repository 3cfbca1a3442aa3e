"""The values that move: a message, one delivery of it, and a result.

All are frozen. Bodies stay bytes until the process that runs the task decodes them.
Times are seconds since the epoch (float), durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from taskmq.states import AckMode, State

JSON = "application/json"
#: Characters that an id, a task's name, a queue's or a key may have.
MAX_NAME = 255
#: The last second a calendar has: no moment and no span of a message is beyond it.
LAST_MOMENT = 253_402_300_799.0
#: The largest count (retries, deliveries, a concurrency limit, the size of a chord) a message may carry.
MAX_COUNT = 2**31 - 1
_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Rate(NamedTuple):
    """A rate limit: at most one start per `interval` seconds among the messages that share `key`."""

    key: str
    interval: float


class ConcurrencyKey(NamedTuple):
    """At most `limit` due messages that share `key` are queued, reserved or running."""

    key: str
    limit: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One submitted task call: Celery's protocol 2 envelope with typed fields.

    `message_id` is made by the producer and unique, so that submitting twice is harmless;
    `task_id` is any text users see and may legally be reused. `body` is `[args, kwargs, embed]` in
    `content_type`. `follow` is what comes after (chain, callbacks, chord) as JSON text, readable
    without decoding the body. `priority` is -9..9, larger = more urgent.
    """

    message_id: str
    task_id: str
    task: str
    queue: str
    body: bytes
    priority: int = 0
    content_type: str = JSON
    content_encoding: str = "utf-8"
    eta: float | None = None
    expires_at: float | None = None
    max_deliveries: int = 5
    ack: AckMode = AckMode.ON_FINISH
    retries: int = 0
    time_limit: float | None = None
    soft_time_limit: float | None = None
    rate: Rate | None = None
    concurrency: ConcurrencyKey | None = None
    follow: str | None = None
    parent_id: str | None = None
    root_id: str | None = None
    store_result: bool = True
    result_expires: float | None = None
    headers: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One reserved copy of a message, held under a lease.

    `token` fences: whoever lost the lease holds a token that changes nothing any more.
    `effective` is the priority it was taken with (differs from the message's only under aging).
    `started` says whether the transition to running has committed. `deliveries` includes this one.
    `seq` with `visible_at` is its place within band and queue.
    """

    message: Message
    token: int
    seq: int
    visible_at: float
    lease_until: float
    deliveries: int = 1
    yields: int = 0
    yieldable: bool = True
    effective: int = 0
    started: bool = False

    @property
    def sort_key(self) -> tuple[int, float, int]:
        """Smaller is taken first: (priority DESC, visible_at ASC, sequence ASC)."""
        return (-self.effective, self.visible_at, self.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRecord:
    """A final state, or progress, of one task as the result store keeps it.

    `body` is the return value (succeeded), `{"exc_type","exc_module","exc_message"}` (failed, revoked,
    expired, dead, and of the last try when retrying) or the progress value (running), in `content_type`.
    `expires_at` None means it is kept for ever.
    """

    task_id: str
    state: State
    body: bytes | None = None
    content_type: str = JSON
    traceback: str | None = None
    ended_at: float | None = None
    expires_at: float | None = None
    task: str = ""
    worker: str = ""
    retries: int = 0
    parent_id: str | None = None
    children: tuple[str, ...] = ()
    # Set where the state has a finer Celery name (compat's custom states such as "PROGRESS").
    label: str = ""


class DeadLetter(NamedTuple):
    """A message that ended without success and can be replayed, and why."""

    number: int
    message: Message
    reason: str
    error: str
    died_at: float
    deliveries: int
    yields: int
