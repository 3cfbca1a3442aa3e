"""The deliveries one worker holds: running ones by job number, unstarted ones in sort order (P16)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from taskmq.message import Delivery
from taskmq.policy.stable_heap import StableHeap


class Running:
    """One delivery in the pool."""

    __slots__ = ("delivery", "lost", "number", "revoked_for", "started_at")

    def __init__(self, number: int, delivery: Delivery, started_at: float) -> None:
        self.number = number
        self.delivery = delivery
        # wall time
        self.started_at = started_at
        # Its lease was lost: what comes of it changes nothing any more.
        self.lost = False
        # The reason of the revoke that reached it, if any.
        self.revoked_for = ""


class Holding:
    """Both kinds together are what `prefetch` counts."""

    def __init__(self) -> None:
        self.running: dict[int, Running] = {}
        self._unstarted: StableHeap[Delivery] = StableHeap()
        self._next_number = 0

    def __len__(self) -> int:
        return len(self.running) + len(self._unstarted)

    @property
    def unstarted(self) -> int:
        """How many wait for a slot."""
        return len(self._unstarted)

    def begin(self, delivery: Delivery, *, started_at: float) -> Running:
        """A delivery goes to the pool, under a number of its own."""
        if self._unstarted:
            self._unstarted.remove(delivery.seq)
        self._next_number += 1
        running = Running(self._next_number, delivery, started_at)
        self.running[running.number] = running
        return running

    def hold(self, delivery: Delivery) -> None:
        """A delivery waits for a slot."""
        self._unstarted.remove(delivery.seq)
        self._unstarted.push(
            delivery.effective,
            delivery,
            key=delivery.seq,
            at=delivery.visible_at,
            sequence=delivery.seq,
        )

    def drop(self, delivery: Delivery) -> None:
        """An unstarted delivery is not ours any more."""
        self._unstarted.remove(delivery.seq)

    def waiting(self) -> Iterator[Delivery]:
        """The unstarted deliveries, the next to start first."""
        return (delivery for _, _, delivery in self._unstarted.ordered())

    def take_waiting(self) -> list[Delivery]:
        """Let go of all unstarted deliveries and return them."""
        waiting = list(self.waiting())
        self._unstarted = StableHeap()
        return waiting

    def of_tasks(self, task_ids: Iterable[str]) -> list[Running]:
        """The running ones of these tasks."""
        wanted = set(task_ids)
        return [r for r in self.running.values() if r.delivery.message.task_id in wanted]

    def leased(self) -> list[Delivery]:
        """Everything whose lease is to be renewed."""
        held = [r.delivery for r in self.running.values() if not r.lost]
        held.extend(self.waiting())
        return held

    def priorities(self) -> list[int]:
        """The effective priorities of what runs, which the slot budgets count."""
        return [r.delivery.effective for r in self.running.values()]
