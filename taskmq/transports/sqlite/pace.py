"""How soon a waiter answers the next commit: at once while they concern it, else a few of them together.

Every commit wakes everybody who waits. Without a pause a worker that finds nothing, or a call that waits for
one result among thousands, would look after each of them.
"""

from __future__ import annotations

import time

_FIRST = 0.0005


class Pace:
    """Of one who waits. After `free` looks in vain each further one is followed by a pause that grows from
    half a millisecond to `longest` seconds."""

    __slots__ = ("_free", "_in_vain", "_longest", "_next_at")

    def __init__(self, *, free: int, longest: float) -> None:
        self._free = free
        self._longest = longest
        self._in_vain = 0
        self._next_at = 0.0

    def woken(self) -> None:
        """A commit of somebody else was met; in vain, until `found` says otherwise."""
        over = self._in_vain - self._free
        self._in_vain += 1
        if over >= 0:
            self._next_at = time.monotonic() + min(self._longest, _FIRST * 2 ** min(over, 16))

    def found(self) -> None:
        """It was what had been waited for."""
        self._in_vain = 0
        self._next_at = 0.0

    def rest(self) -> float:
        """Seconds of the pause that are left."""
        return self._next_at and max(0.0, self._next_at - time.monotonic())


def for_work() -> Pace:
    """Of a worker: another one was faster, or what was committed is not for it."""
    return Pace(free=1, longest=0.001)


def for_result() -> Pace:
    """Of one call that waits for results: its message's own commits come first (reserved, then settled)."""
    return Pace(free=4, longest=0.005)
