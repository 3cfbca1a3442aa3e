"""The operators' seam: what a person asks of a transport (status, peek, why, dlq, purge, pause).

Apart from `base` because no worker turn needs it, and a broker may answer some of it worse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from taskmq.message import DeadLetter, Message
from taskmq.states import State
from taskmq.transports.base import QueueShare


class Depth(NamedTuple):
    """Counts of one queue and band. `oldest_at`: visible_at of the oldest claimable one, or None."""

    queue: str
    priority: int
    ready: int = 0
    scheduled: int = 0
    reserved: int = 0
    running: int = 0
    blocked: int = 0
    oldest_at: float | None = None


class Peeked(NamedTuple):
    """One message in claim order."""

    message: Message
    effective: int
    visible_at: float
    seq: int
    deliveries: int
    yields: int
    yieldable: bool


class QueueInfo(NamedTuple):
    """One queue the store knows."""

    name: str
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where one message of a task is and everything `why` needs to give the one reason it waits.

    `due_at` is its "not before" when scheduled; `ahead` counts the claimable messages that sort before it
    in its queue and above it in other queues (capped, see `ahead_capped`); `blocked_by` are the task_ids
    holding its concurrency key; `rate_until` is its token time; `dead` is set for a dead letter.
    """

    message: Message
    state: State
    seq: int
    visible_at: float
    due_at: float | None = None
    yielded: bool = False
    deliveries: int = 0
    yields: int = 0
    worker: str = ""
    lease_until: float | None = None
    paused: bool = False
    ahead: int = 0
    ahead_capped: bool = False
    blocked_by: tuple[str, ...] = ()
    rate_until: float | None = None
    dead: DeadLetter | None = None

    @classmethod
    def buried(cls, letter: DeadLetter) -> Found:
        """What is found of a dead letter."""
        return cls(
            message=letter.message,
            state=State.DEAD,
            seq=0,
            visible_at=letter.died_at,
            deliveries=letter.deliveries,
            yields=letter.yields,
            dead=letter,
        )


class Revoked(NamedTuple):
    """What a revoke did: the state the task was in, and whether it will (still) run.

    `ended` True: it ended as revoked now. False with a running state: the mark is stored, and a
    cooperative or terminated run ends as revoked. False with a final state: it was over already.
    """

    task_id: str
    was: State
    ended: bool


class Operators(ABC):
    """Reads never block writers; writes are small transactions in a loop."""

    @abstractmethod
    def depth(self, queues: Sequence[str] | None = None) -> list[Depth]:
        """Counts by queue and band, highest band first within a queue; O(n) index scan."""

    @abstractmethod
    def queues(self) -> list[QueueInfo]:
        """Every queue the store has seen, by name."""

    @abstractmethod
    def peek(self, queues: Sequence[QueueShare], limit: int) -> list[Peeked]:
        """The next `limit` messages in the order one-slot reserves would take them; changes nothing."""

    @abstractmethod
    def find(self, task_id: str) -> list[Found]:
        """Every live message and dead letter of this task, newest first."""

    @abstractmethod
    def revoke(self, task_ids: Sequence[str], *, reason: str = "") -> list[Revoked]:
        """Never start these: unstarted ones end as revoked now, unknown ids are remembered."""

    @abstractmethod
    def is_revoked(self, task_id: str) -> bool:
        """Whether a revoke of this id is stored."""

    @abstractmethod
    def purge(self, queue: str) -> int:
        """End every message of a queue that no worker holds as revoked; return how many."""

    @abstractmethod
    def pause(self, queue: str) -> None:
        """Start nothing of this queue until `resume`; what runs goes on. Creates the queue."""

    @abstractmethod
    def resume(self, queue: str) -> None:
        """Start from this queue again."""

    @abstractmethod
    def dead_letters(
        self, *, queue: str | None = None, after: int = 0, limit: int = 100
    ) -> list[DeadLetter]:
        """Dead letters by number, oldest first, from above `after`."""

    @abstractmethod
    def dead_letter(self, key: str) -> DeadLetter | None:
        """One dead letter by its number or by a task_id (the newest of that task)."""

    @abstractmethod
    def replay(self, numbers: Sequence[int], *, priority: int | None = None) -> list[Message]:
        """Queue these again: same task_id and priority (P7) unless given, new sequence, no deliveries,
        no retries, no past expiry. Returns what was queued; numbers that are gone are skipped."""

    @abstractmethod
    def drop(self, numbers: Sequence[int]) -> int:
        """Delete dead letters for good; return how many there were."""
