"""Which bands a slot may take from, and which head is next (G1, P2, P17). Pure.

Reserved slots are budgets: `normal_reserved_slots` bounds how many slots messages above band 0 may
hold, `urgent_reserved_slots` how many those below `urgent_threshold` may hold. A budget that is used
up narrows the window of bands; the choice inside the window is strict.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from taskmq.priority import MAX_PRIORITY, MIN_PRIORITY


class Window(NamedTuple):
    """The bands, both ends included, that may be taken from now."""

    low: int = MIN_PRIORITY
    high: int = MAX_PRIORITY

    def admits(self, priority: int) -> bool:
        """Whether a message of this priority may be taken."""
        return self.low <= priority <= self.high


@dataclass(frozen=True, slots=True)
class Budget:
    """How many more slots each class of messages may take; None is no bound.

    `above_normal` counts messages above band 0 (P17), `below_urgent` those below `threshold`.
    """

    above_normal: int | None = None
    below_urgent: int | None = None
    threshold: int = 5

    @classmethod
    def of(
        cls,
        *,
        slots: int,
        normal_reserved: int,
        urgent_reserved: int,
        threshold: int,
        running: Iterable[int],
    ) -> Budget:
        """The budgets left on a worker of `slots` slots that runs messages of these priorities."""
        above = below = None
        held = list(running)
        if normal_reserved:
            above = max(0, slots - normal_reserved - sum(p > 0 for p in held))
        if urgent_reserved:
            below = max(0, slots - urgent_reserved - sum(p < threshold for p in held))
        return cls(above, below, threshold)

    @property
    def bounded(self) -> bool:
        """Whether either class has a bound at all."""
        return self.above_normal is not None or self.below_urgent is not None

    def window(self) -> Window | None:
        """The bands open now; None when neither class may take a slot."""
        low = MIN_PRIORITY
        high = MAX_PRIORITY
        if self.above_normal is not None and self.above_normal <= 0:
            high = 0
        if self.below_urgent is not None and self.below_urgent <= 0:
            low = self.threshold
        return Window(low, high) if low <= high else None

    def take(self, priority: int) -> Budget:
        """The budget after a slot went to a message of this priority."""
        above = self.above_normal
        below = self.below_urgent
        if above is not None and priority > 0:
            above -= 1
        if below is not None and priority < self.threshold:
            below -= 1
        return Budget(above, below, self.threshold)

    def room(self, priority: int) -> int | None:
        """How many messages of this one band fit; None is no bound."""
        bounds = []
        if self.above_normal is not None and priority > 0:
            bounds.append(self.above_normal)
        if self.below_urgent is not None and priority < self.threshold:
            bounds.append(self.below_urgent)
        return min(bounds) if bounds else None


OPEN = Budget()


class Head(NamedTuple):
    """The first claimable message of one lane (a queue, or one rate-limited task in a queue).

    `effective` is its priority, raised by aging where that is on.
    """

    queue: str
    lane: int
    effective: int
    visible_at: float
    seq: int

    @property
    def sort_key(self) -> tuple[int, float, int]:
        """The order of claims, smallest first (DESIGN §4)."""
        return (-self.effective, self.visible_at, self.seq)


def top_band(heads: Iterable[Head], window: Window) -> list[Head]:
    """The heads of the highest band the window admits, in sort order; empty when there is none.

    Over all queues alike (P2): a queue's own priority or weight never ranks here.
    """
    best: list[Head] = []
    for head in heads:
        if not window.admits(head.effective):
            continue
        if not best or head.effective > best[0].effective:
            best = [head]
        elif head.effective == best[0].effective:
            best.append(head)
    best.sort(key=lambda h: (h.visible_at, h.seq))
    return best


def local_first(local: int | None, stored: int | None) -> bool:
    """Whether a free slot takes the unstarted delivery held locally before the store's head.

    On a tie the local one: it was reserved earlier, so it stood before whatever is stored now.
    """
    if local is None:
        return False
    return stored is None or local >= stored
