"""A mutex that an interrupt of the thread inside cannot leave locked, and that knows who is inside.

Python raises what interrupts a thread (Ctrl-C, a handler of SIGALRM) after a call or at a jump back, never
between the `__enter__` of a lock and the block under it. So locks are only ever taken by `with`, and what has
to be set back is set back without a call before it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from taskmq import interrupts
from taskmq.errors import TransportUnavailable
from taskmq.interrupts import Interrupts

T = TypeVar("T")


class Section:
    """What one thread at a time may do. Soft time limits of our own wait until it is left."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._inside: Interrupts | None = None

    def run(self, work: Callable[[], T]) -> T:
        """Do `work` alone. Raises `TransportUnavailable` in a signal handler that interrupted just this."""
        me = interrupts.here()
        self._refuse_inside(me)
        depth = me.depth
        try:
            with me.lock:
                me.depth = depth + 1
            with self._mutex:
                self._inside = me
                try:
                    return work()
                finally:
                    self._inside = None
        finally:
            held = None
            with me.lock:
                me.depth = depth
                if not depth:
                    held, me.held = me.held, None
            if held is not None:
                raise held

    def locked(self) -> bool:
        """Whether a thread is inside."""
        return self._mutex.locked()

    def block(self, timeout: float) -> bool:
        """Keep everybody out until `unblock`; False when somebody stayed inside for `timeout` seconds."""
        if self._inside is interrupts.here():
            return False
        return self._mutex.acquire(timeout=timeout)

    def unblock(self) -> None:
        """Let others in again."""
        self._mutex.release()

    def _refuse_inside(self, me: Interrupts) -> None:
        if self._inside is me:
            raise TransportUnavailable(
                f"{self._path} is in use by the very call that was interrupted here: a signal handler cannot "
                "submit or ask while it interrupts a submit; set a flag in it and submit afterwards"
            )
