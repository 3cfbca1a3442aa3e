"""What becomes of a message that no worker settles: expired, revoked, lost, delivered too often. Pure.

Apart from `following`, which knows workflows: here is only the message's own state and result, the
same words and reasons on every transport.
"""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import NamedTuple, TypedDict

from taskmq.codec.failures import encode_failure, failure_line
from taskmq.errors import TaskExpired, TaskMQError, TaskRevoked, WorkerLost
from taskmq.message import Message, ResultRecord
from taskmq.policy import following
from taskmq.policy.following import NOTHING, Consequence
from taskmq.states import AckMode, State

# The reason of a dead letter whose worker or child was lost `max_deliveries` times.
CRASH_LOOP = "crash-loop"
# The reason of a dead letter whose body, headers or stored row cannot be read.
UNREADABLE = "unreadable"
# The reason of a dead letter that was acknowledged on start and whose worker was lost.
WORKER_LOST = "worker-lost"


class Ended(NamedTuple):
    """The final record (None where the message keeps no result) and what follows."""

    state: State
    error: str
    result: ResultRecord | None
    then: Consequence = NOTHING


class Circumstances(TypedDict):
    """What every ending below also needs: the time, and how long results are kept by default."""

    now: float
    result_expires: float | None


class Lost(enum.Enum):
    """What becomes of a delivery whose lease was lost."""

    RETURNED = "returned"  # it had not started: back to its place, the delivery is taken back
    REDELIVERED = "redelivered"  # back to its place, the delivery stays counted
    FAILED = "failed"  # acknowledged on start: a failure and a dead letter
    DEAD = "dead"  # delivered `max_deliveries` times without an end: a dead letter


_FATES = {
    Lost.RETURNED: "it had not started, and is back in its place",
    Lost.REDELIVERED: "it runs again",
    Lost.FAILED: "it was acknowledged on start, so it ends as a failure that can be replayed",
    Lost.DEAD: "it is buried, as that happened too often",
}


def after_lost_lease(*, started: bool, ack: AckMode, deliveries: int, max_deliveries: int) -> Lost:
    """DESIGN §7's table, column "worker dies". `deliveries` includes the lost one."""
    if not started:
        return Lost.RETURNED
    if ack is AckMode.ON_START:
        return Lost.FAILED
    return Lost.DEAD if deliveries >= max_deliveries else Lost.REDELIVERED


def said_of_lost(task_id: str, worker: str, fate: Lost) -> str:
    """One line for the log: whose lease was lost, and what becomes of the task."""
    return f"task {task_id}: the lease of worker {worker} was lost; {_FATES[fate]}"


def kept_until(message: Message, now: float, default: float | None) -> float | None:
    """When the result of this message may be swept; None or 0 seconds keep it for ever."""
    seconds = default if message.result_expires is None else message.result_expires
    return now + seconds if seconds else None


def end(
    message: Message, state: State, error: TaskMQError, *, now: float, result_expires: float | None
) -> Ended:
    """The ending of a message in `state` (FAILED, REVOKED, EXPIRED or DEAD) because of `error`."""
    failure = encode_failure(error)
    record = None
    if message.store_result:
        record = ResultRecord(
            task_id=message.task_id,
            state=state,
            body=failure,
            ended_at=now,
            expires_at=kept_until(message, now, result_expires),
            task=message.task,
            retries=message.retries,
            parent_id=message.parent_id,
        )
    return Ended(
        state=state,
        error=failure_line(error),
        result=record,
        then=following.ended(message, state, failure, now=now, result_expires=result_expires),
    )


def expired(message: Message, *, now: float, result_expires: float | None) -> Ended:
    """It was not started before `expires_at` (I7)."""
    late = TaskExpired("it was not started before its expiry")
    return end(message, State.EXPIRED, late, now=now, result_expires=result_expires)


def revoked(message: Message, reason: str, *, now: float, result_expires: float | None) -> Ended:
    """It was revoked before it started (I8)."""
    error = TaskRevoked(reason or "revoked")
    return end(message, State.REVOKED, error, now=now, result_expires=result_expires)


def purged(message: Message, *, now: float, result_expires: float | None) -> Ended:
    """An operator purged its queue: whoever waits for its result is told."""
    error = TaskRevoked("its queue was purged")
    return end(message, State.REVOKED, error, now=now, result_expires=result_expires)


def lost_on_start(message: Message, *, now: float, result_expires: float | None) -> Ended:
    """Acknowledged on start, and its worker was lost: at most once means it does not run again."""
    error = WorkerLost("its worker was lost while it ran, and it was acknowledged on start")
    return end(message, State.FAILED, error, now=now, result_expires=result_expires)


def dead(message: Message, deliveries: int, *, now: float, result_expires: float | None) -> Ended:
    """Delivered `max_deliveries` times and never settled (I5)."""
    error = WorkerLost(f"delivered {deliveries} times, and none of them came to an end")
    return end(message, State.DEAD, error, now=now, result_expires=result_expires)


def replayed(message: Message, *, now: float, priority: int | None) -> Message:
    """A dead letter's message as it is queued again: same ids and priority unless given (P7).

    Its schedule is over, an expiry that has passed is cleared, and its retries start anew: whoever replays
    wants it to run, with all the tries of a new call.
    """
    late = message.expires_at is not None and message.expires_at <= now
    return replace(
        message,
        priority=message.priority if priority is None else priority,
        eta=None,
        retries=0,
        expires_at=None if late else message.expires_at,
    )


def waiting_state(*, due_at: float | None, visible_at: float, retries: int) -> State:
    """The state of an unreserved message, from its "not before" (`due_at`, None once it is due).

    Only a message that waits for its own schedule is SCHEDULED, or RETRYING after a retry. A yield's
    delay, a redelivery's back-off and a rate limit's token time leave it QUEUED.
    """
    if due_at is None or due_at != visible_at:
        return State.QUEUED
    return State.RETRYING if retries else State.SCHEDULED
