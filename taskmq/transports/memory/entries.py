"""One stored message with everything about it that changes, and the place it is in."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from taskmq.message import Delivery, Message
from taskmq.policy.endings import waiting_state
from taskmq.states import State


class Place(enum.Enum):
    """Where a live message is; "is it visible" is a place, not a predicate, as in SQLite."""

    READY = "ready"
    SCHEDULED = "scheduled"
    BLOCKED = "blocked"
    RESERVED = "reserved"
    RUNNING = "running"

    @property
    def held(self) -> bool:
        """Whether a worker holds it under a lease."""
        return self in (Place.RESERVED, Place.RUNNING)


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """A live message. Changed only under the store's lock.

    `visible_at` with `seq` is its place in the band; `due_at` is a later "not before", None when there is
    none. `booked`: it holds a rate token time, so it needs no other token for its next start.
    `has_key`: it counts against its concurrency key. `lease` is the length of the one that holds it.
    """

    message: Message
    seq: int
    visible_at: float
    place: Place = Place.SCHEDULED
    due_at: float | None = None
    booked: bool = False
    has_key: bool = False
    deliveries: int = 0
    yields: int = 0
    yieldable: bool = True
    token: int = 0
    worker: str = ""
    lease_until: float = 0.0
    lease: float = 0.0
    effective: int = 0

    @property
    def sort_key(self) -> tuple[int, float, int]:
        """The order of claims, smallest first."""
        return (-self.message.priority, self.visible_at, self.seq)

    @property
    def rate_key(self) -> str | None:
        """The key of its rate limit; None for one that has none."""
        rate = self.message.rate
        return None if rate is None else rate.key

    @property
    def state(self) -> State:
        """What its place means to whoever asks for its task."""
        if self.place is Place.RUNNING:
            return State.RUNNING
        if self.place is Place.RESERVED:
            return State.RESERVED
        if self.place is Place.SCHEDULED:
            return waiting_state(
                due_at=self.due_at, visible_at=self.visible_at, retries=self.message.retries
            )
        return State.QUEUED

    def delivery(self) -> Delivery:
        """What the holding worker gets."""
        return Delivery(
            message=self.message,
            token=self.token,
            seq=self.seq,
            visible_at=self.visible_at,
            lease_until=self.lease_until,
            deliveries=self.deliveries,
            yields=self.yields,
            yieldable=self.yieldable,
            effective=self.effective,
            started=self.place is Place.RUNNING,
        )
