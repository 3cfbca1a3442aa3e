"""The worker's row: that it lives, and how many slots have been free for a while."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from taskmq.clock import Clock
from taskmq.coordination.base import WorkerInfo
from taskmq.worker.rules import Rules

INTERVAL = 10.0


class Heartbeat:
    """Decides when the row is written.

    Free slots are told only once they have been free, or taken, for a whole poll interval: a busy
    worker need not write, and one that runs a short task now and then need not either.
    """

    def __init__(self, rules: Rules, *, clock: Clock, tasks: tuple[str, ...]) -> None:
        self._rules = rules
        self._clock = clock
        self._tasks = tasks
        self._started_at = clock.now()
        self._next_at = clock.monotonic()
        self._told = 0
        self._seen = 0
        self._seen_since = clock.monotonic()

    def due(self, now: float, free: int) -> bool:
        """Whether the row should be written now, with this many slots free."""
        if free != self._seen:
            # Told is what matters to others: whether there is any free slot at all.
            if bool(free) != bool(self._seen):
                self._seen_since = now
            self._seen = free
        if now >= self._next_at:
            return True
        return self._settled(now) and bool(self._seen) != bool(self._told)

    def _settled(self, now: float) -> bool:
        return now - self._seen_since >= self._rules.poll_interval

    def next_at(self, now: float) -> float:
        """Monotonic time at which it may become due."""
        if bool(self._seen) != bool(self._told) and not self._settled(now):
            return self._seen_since + self._rules.poll_interval
        return self._next_at

    def info(self, *, state: str, last_poll_at: float, details: Mapping[str, Any]) -> WorkerInfo:
        """The row as it is now; it counts as written."""
        now = self._clock.monotonic()
        self._next_at = now + INTERVAL
        self._told = self._seen if self._settled(now) and state == "running" else 0
        return WorkerInfo(
            name=self._rules.name,
            pid=os.getpid(),
            host=socket.gethostname(),
            queues=tuple(q.name for q in self._rules.queues),
            slots=self._rules.slots,
            free_slots=self._told,
            started_at=self._started_at,
            seen_at=self._clock.now(),
            last_poll_at=last_poll_at,
            tasks=self._tasks,
            state=state,
            details=details,
        )
