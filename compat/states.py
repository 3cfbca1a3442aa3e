"""Celery's states, their order, and how the engine's states read in them (DESIGN §8).

Source: Celery's `celery.states` reference. Custom states (`update_state(state="PROGRESS")`) are plain
text and sort after the built-in ones that end a task and before those that do not.
"""

from __future__ import annotations

from typing import Any

from taskmq.states import State

__all__ = (
    "PENDING",
    "RECEIVED",
    "STARTED",
    "SUCCESS",
    "FAILURE",
    "REVOKED",
    "REJECTED",
    "RETRY",
    "IGNORED",
    "READY_STATES",
    "UNREADY_STATES",
    "EXCEPTION_STATES",
    "PROPAGATE_STATES",
    "ALL_STATES",
    "PRECEDENCE",
    "PRECEDENCE_LOOKUP",
    "NONE_PRECEDENCE",
    "precedence",
    "state",
    "celery_state",
)

#: Not started, or not known at all.
PENDING = "PENDING"
#: Taken by a worker. Only events carry it.
RECEIVED = "RECEIVED"
#: Running; shown only under `task_track_started`.
STARTED = "STARTED"
SUCCESS = "SUCCESS"
FAILURE = "FAILURE"
#: Revoked, or expired before it started.
REVOKED = "REVOKED"
#: Refused by a worker. Only events carry it.
REJECTED = "REJECTED"
#: Waiting for its next try.
RETRY = "RETRY"
IGNORED = "IGNORED"

READY_STATES = frozenset({SUCCESS, FAILURE, REVOKED})
UNREADY_STATES = frozenset({PENDING, RECEIVED, STARTED, REJECTED, RETRY})
EXCEPTION_STATES = frozenset({RETRY, FAILURE, REVOKED})
PROPAGATE_STATES = frozenset({FAILURE, REVOKED})
ALL_STATES = frozenset({PENDING, RECEIVED, STARTED, SUCCESS, FAILURE, RETRY, REVOKED})

#: From the furthest to the least far; None stands for every custom state.
PRECEDENCE: list[str | None] = [
    SUCCESS,
    FAILURE,
    None,
    REVOKED,
    STARTED,
    RECEIVED,
    REJECTED,
    RETRY,
    PENDING,
]
PRECEDENCE_LOOKUP: dict[str | None, int] = {name: at for at, name in enumerate(PRECEDENCE)}
NONE_PRECEDENCE = PRECEDENCE_LOOKUP[None]


def precedence(state: str | None) -> int:
    """The place of a state in `PRECEDENCE`; a smaller number has come further."""
    return PRECEDENCE_LOOKUP.get(state, NONE_PRECEDENCE)


class state(str):  # noqa: N801 - Celery's name, used as `states.state(name) > states.SUCCESS`
    """A state that compares by how far it has come: `state("SUCCESS") > state("PENDING")`."""

    __slots__ = ()

    def __gt__(self, other: Any) -> bool:
        return precedence(self) < precedence(other)

    def __ge__(self, other: Any) -> bool:
        return precedence(self) <= precedence(other)

    def __lt__(self, other: Any) -> bool:
        return precedence(self) > precedence(other)

    def __le__(self, other: Any) -> bool:
        return precedence(self) >= precedence(other)


_READS_AS = {
    State.UNKNOWN: PENDING,
    State.QUEUED: PENDING,
    State.SCHEDULED: PENDING,
    State.RESERVED: PENDING,
    State.RETRYING: RETRY,
    State.SUCCEEDED: SUCCESS,
    State.FAILED: FAILURE,
    State.DEAD: FAILURE,
    State.REVOKED: REVOKED,
    State.EXPIRED: REVOKED,
}


def celery_state(found: State, label: str = "", *, track_started: bool = False) -> str:
    """The Celery state of an engine state. `label` is the custom state a task gave itself, if any."""
    if label and not found.final:
        return label
    if found is State.RUNNING:
        return STARTED if track_started else PENDING
    return _READS_AS[found]
