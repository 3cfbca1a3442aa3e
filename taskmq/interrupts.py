"""Holding back what interrupts a thread while it is inside something that must end whole.

A soft time limit is raised between any two bytecodes of its task, hence also in the middle of a store's
transaction. Our own limits ask here first, and wait the microseconds until the store is left again. What
others raise from signal handlers of their own (Ctrl-C) cannot be held back; the store survives it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class Interrupts:
    """One thread's: whether it may be interrupted now, and what waits until it may.

    `depth` is not 0 while it must not be. It is changed under `lock`, inside which nothing is called: Python
    runs signal handlers after calls only, so none of this thread's ever finds the lock taken.
    """

    __slots__ = ("depth", "held", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.held: BaseException | None = None

    def raise_here(self, error: BaseException) -> None:
        """Raise `error`, in a signal handler on this thread; while it must not be, at the end of that."""
        if not self.depth:
            raise error
        self.held = error

    def raise_there(self, error: BaseException, now: Callable[[], object]) -> None:
        """Raise `error` in this thread from another one: `now` does it where it may be done at once."""
        with self.lock:
            if self.depth:
                self.held = error
            else:
                now()


class _Here(threading.local):
    def __init__(self) -> None:
        self.interrupts = Interrupts()


_HERE = _Here()


def here() -> Interrupts:
    """Those of the calling thread: the same object for as long as it lives."""
    return _HERE.interrupts


def _renew_lock() -> None:
    # Another thread of the parent may have held it.
    _HERE.interrupts.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
