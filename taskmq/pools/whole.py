"""Doing something whole: a soft limit that passes meanwhile is raised at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from taskmq import interrupts

T = TypeVar("T")


def whole(work: Callable[[], T]) -> T:
    """Do `work` on this thread, and only then raise a soft limit that hit it.

    For what would be spoilt half done: part of a frame in a pipe, a mark that is set and not acted on.
    """
    me = interrupts.here()
    depth = me.depth
    try:
        with me.lock:
            me.depth = depth + 1
        return work()
    finally:
        # As `interrupts` demands: nothing is called under its lock.
        held = None
        with me.lock:
            me.depth = depth
            if not depth:
                held, me.held = me.held, None
        if held is not None:
            raise held
