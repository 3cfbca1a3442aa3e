"""No unstarted delivery waits on a busy worker while another consumer of its queue is idle (DESIGN §4).

With `prefetch` above `concurrency` a worker may hold what another could run now. Looked at once per
poll interval, and only while something is held unstarted.
"""

from __future__ import annotations

from collections.abc import Iterable

from taskmq.coordination.base import WorkerInfo
from taskmq.message import Delivery
from taskmq.worker.rules import Rules

# A row older than this may be of a worker that is gone; heartbeats come every 10 s.
SEEN_WITHIN = 30.0


class Sharing:
    """Whether to hand back, and whether to hold more than the slots can run."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._next_look = 0.0
        # While another consumer is idle nothing is prefetched, or what was just handed back would come
        # straight back here.
        self.others_idle = False

    def due(self, now: float, unstarted: int) -> bool:
        """Whether to look at the other workers now."""
        return (bool(unstarted) or self.others_idle) and now >= self._next_look

    def next_at(self, unstarted: int) -> float | None:
        """Monotonic time of the next look, if one is owed."""
        return self._next_look if unstarted or self.others_idle else None

    def to_hand_back(
        self, now: float, workers: Iterable[WorkerInfo], unstarted: Iterable[Delivery]
    ) -> list[Delivery]:
        """The unstarted deliveries that others can run now, the most urgent first."""
        self._next_look = now + self._rules.poll_interval
        mine = {q.name for q in self._rules.queues}
        idle = [
            (set(w.queues), w.free_slots)
            for w in workers
            if w.name != self._rules.name
            and w.free_slots > 0
            and w.state == "running"
            and not mine.isdisjoint(w.queues)
        ]
        self.others_idle = bool(idle)
        back = []
        for delivery in unstarted:
            for number, (queues, free) in enumerate(idle):
                if free > 0 and delivery.message.queue in queues:
                    idle[number] = (queues, free - 1)
                    back.append(delivery)
                    break
        return back
