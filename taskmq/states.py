"""The states of a task, one name each, everywhere (table, event, column, result).

The state of an unfinished task is derived from where its message is. Only progress and final
states are rows of the result store.
"""

from __future__ import annotations

from enum import Enum


class State(str, Enum):
    """Where a task stands. Compares equal to its lower-case name."""

    UNKNOWN = "unknown"
    QUEUED = "queued"
    SCHEDULED = "scheduled"
    RESERVED = "reserved"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REVOKED = "revoked"
    EXPIRED = "expired"
    DEAD = "dead"

    def __str__(self) -> str:
        return self.value

    @property
    def final(self) -> bool:
        """Whether the task can no longer change (a dead one only by a replay)."""
        return self in FINAL


FINAL: frozenset[State] = frozenset(
    {State.SUCCEEDED, State.FAILED, State.REVOKED, State.EXPIRED, State.DEAD}
)


class AckMode(str, Enum):
    """When a message counts as handled, and so what a lost child or worker means.

    on_finish   at least once: a lost child or worker means another delivery (the default)
    on_start    at most once: a lost child or worker is a failure that can be replayed
    late        Celery's acks_late: a lost child is a failure, a lost worker another delivery
    """

    ON_FINISH = "on_finish"
    ON_START = "on_start"
    LATE = "late"

    def __str__(self) -> str:
        return self.value
