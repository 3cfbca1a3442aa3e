"""The drain ladder: from running to stopped, one rung at a time. Pure but for the clock values given.

RUNNING ──TERM, INT, HUP, shutdown──▶ DRAINING ──nothing runs, or the deadline──▶ ENDING ──settled──▶ STOPPED
                                         └── a second signal, or QUIT: the deadline is now
"""

from __future__ import annotations

import enum
from collections import deque

# How long the last outcomes may take to settle once the worker has to go; their leases end anyway.
SETTLE_GRACE = 5.0


class Stage(enum.Enum):
    """Where a worker stands."""

    RUNNING = "running"
    DRAINING = "draining"
    ENDING = "ending"
    STOPPED = "stopped"


class Ladder:
    """Which rung the worker is on, and until when it may stay there."""

    def __init__(self, drain_timeout: float | None, lease: float) -> None:
        self.stage = Stage.RUNNING
        self.reason = ""
        self._drain_timeout = drain_timeout
        self._lease = lease
        self._deadline: float | None = None
        self._end_by = 0.0
        #: Whether it was asked to stop now: a second time, or by QUIT.
        self.hurried = False
        # Asked from any thread: an append and a popleft are atomic.
        self._asked: deque[tuple[str, bool]] = deque()

    def ask(self, reason: str, *, at_once: bool = False) -> None:
        """Ask for a stop; thread-safe, takes effect at the next `take`."""
        self._asked.append((reason, at_once))

    def take(self, now: float) -> bool:
        """Let what was asked take effect; whether draining began."""
        began = False
        while self._asked:
            reason, at_once = self._asked.popleft()
            if self.stage is Stage.RUNNING:
                began = True
                self.stage = Stage.DRAINING
                self.reason = reason
                if self._drain_timeout is not None:
                    self._deadline = now + self._drain_timeout
                if at_once:
                    self._hurry(now)
            elif self.stage is Stage.DRAINING:
                self._hurry(now)
        return began

    def _hurry(self, now: float) -> None:
        self._deadline = now
        self.hurried = True

    def left(self, now: float) -> float | None:
        """Seconds that running tasks have; None for as long as they need."""
        return None if self._deadline is None else max(0.0, self._deadline - now)

    @property
    def deadline(self) -> float | None:
        """Monotonic time at which running tasks are handed back, or the last settling is given up."""
        return self._end_by if self.stage is Stage.ENDING else self._deadline

    def late(self, now: float) -> bool:
        """Whether the deadline of this rung has passed."""
        return self.deadline is not None and now >= self.deadline

    def end(self, now: float, *, hurried: bool) -> None:
        """Nothing runs any more; only settling is left."""
        self.stage = Stage.ENDING
        # Nobody waits for a worker that drained in time: it may try as long as its leases would hold.
        self._end_by = now + (SETTLE_GRACE if hurried else max(SETTLE_GRACE, self._lease))

    def stopped(self) -> None:
        """The loop may end."""
        self.stage = Stage.STOPPED


def stopping(reason: str, *, running: int, unstarted: int, left: float | None) -> str:
    """What a worker says when it begins to drain; for people, who may have pressed Ctrl-C."""
    parts = []
    if running:
        parts.append("1 task runs" if running == 1 else f"{running} tasks run")
        if left is not None:
            parts[0] += f" and {'has' if running == 1 else 'have'} {left:g} s to end"
    if unstarted:
        parts.append(f"{unstarted} not started {'goes' if unstarted == 1 else 'go'} back")
    said = f"stopping ({reason}): {', '.join(parts) or 'nothing runs'}"
    return f"{said}. A second signal stops at once" if running and left != 0 else said
