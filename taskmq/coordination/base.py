"""The coordination seam: workers and their free slots, commands and replies, events, duties.

On SQLite these are tables, on brokers what they have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A worker as it last reported itself. Times are epoch seconds.

    `free_slots` is above 0 only once the worker has been idle for a whole poll interval, so that a busy
    one need not write.
    """

    name: str
    pid: int
    host: str
    queues: tuple[str, ...]
    slots: int
    free_slots: int
    started_at: float
    seen_at: float
    last_poll_at: float
    tasks: tuple[str, ...] = ()
    state: str = "running"  # or "draining"
    details: Mapping[str, Any] = field(default_factory=dict)


class Command(NamedTuple):
    """One control command as a worker receives it."""

    number: int
    name: str
    arguments: Mapping[str, Any]
    reply_to: str | None


class Event(NamedTuple):
    """One event as the ring keeps it; `fields` are JSON values."""

    number: int
    kind: str
    at: float
    fields: Mapping[str, Any]


class Maintained(NamedTuple):
    """What one round of a duty did; `notes` say it in words where an operator should read them."""

    done: int = 0
    more: bool = False
    notes: tuple[str, ...] = ()


class Coordination(ABC):
    """Shared, small and expiring; nothing a task's fate depends on."""

    @abstractmethod
    def report(self, worker: WorkerInfo) -> None:
        """Heartbeat: insert or replace this worker's row."""

    @abstractmethod
    def leave(self, name: str) -> None:
        """Remove a worker's row and its commands."""

    @abstractmethod
    def workers(self, *, seen_within: float = 60.0) -> list[WorkerInfo]:
        """Workers that reported within that many seconds, by name."""

    @abstractmethod
    def send(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        to: Sequence[str] | None = None,
        reply_to: str | None = None,
        expires: float = 60.0,
    ) -> list[str]:
        """Queue a command for these workers (all live ones by default); return their names."""

    @abstractmethod
    def commands(self, worker: str) -> list[Command]:
        """Take the commands queued for a worker, oldest first. Cheap when there are none."""

    @abstractmethod
    def reply(self, reply_to: str, worker: str, answer: Mapping[str, Any]) -> None:
        """Answer a command."""

    @abstractmethod
    def replies(self, reply_to: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Take the answers that came: (worker, answer)."""

    @abstractmethod
    def emit(self, events: Sequence[tuple[str, float, Mapping[str, Any]]]) -> None:
        """Append (kind, at, fields) to the capped ring."""

    @abstractmethod
    def events(self, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events numbered above `after`, oldest first."""

    @abstractmethod
    def last_event(self) -> int:
        """The number of the newest event, 0 when there is none."""

    @abstractmethod
    def take_duty(self, name: str, holder: str, ttl: float) -> bool:
        """Become or stay the one holder of a duty for `ttl` seconds."""

    @abstractmethod
    def drop_duties(self, holder: str) -> None:
        """Give up every duty held."""

    # The duties themselves. Each call is one short transaction; `more` asks for another.

    @abstractmethod
    def reap(self) -> Maintained:
        """Take back the deliveries whose lease is lost: to their place, to the dead letters after
        `max_deliveries`, or as a failure where they were acknowledged on start."""

    @abstractmethod
    def sweep(self) -> Maintained:
        """End expired messages; delete results, dead letters, revocations and replies past their time."""

    @abstractmethod
    def checkpoint(self) -> Maintained:
        """Housekeeping of the store itself."""
