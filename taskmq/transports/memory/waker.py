"""Waking waiting threads: each has a bell of its own."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

from taskmq.bell import Bell, readable


class Waker:
    """Lets any number of threads wait, and wakes all of them.

    A thread's bell exists from its first wait on and keeps what rang since, so that nothing that came
    between a look and a wait is slept over; the first wait returns at once for the same reason.
    """

    def __init__(self) -> None:
        self._mine = threading.local()
        self._bells: weakref.WeakSet[Bell] = weakref.WeakSet()
        self._lock = threading.Lock()

    def wake(self) -> None:
        """End every wait that is under way, and the next of each thread that is between two."""
        with self._lock:
            bells = list(self._bells)
        for bell in bells:
            bell.ring()

    def wait(self, timeout: float, fds: Sequence[int]) -> None:
        """Until woken, until one of `fds` is readable, or for `timeout` seconds."""
        bell: Bell | None = getattr(self._mine, "bell", None)
        if bell is None:
            bell = self._mine.bell = Bell()
            with self._lock:
                self._bells.add(bell)
            return
        if bell.fd in readable([bell.fd, *fds], timeout):
            bell.drain()
