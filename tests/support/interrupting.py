"""Interrupting a call at each place where Python could raise what interrupts a thread.

A profiled thread of Python 3.11 spins at its next call for as long as an exception that was set for another
thread (`PyThreadState_SetAsyncExc`) is not raised there: for ever, if it was taken back. So what hangs here
was preceded, in its process, by somebody who left one (see tests/unit/pools/test_threads.py).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """What a Ctrl-C or the handler of a signal raises."""


# Where Python looks for signals, as a profiler sees it: at the start of a function, and after a call of
# one written in C. Jumps back are the same to what surrounds a loop.
_PLACES = frozenset({"call", "c_return", "c_exception"})
# The longest of the calls has some hundreds; more are of one that grows as fast as the place.
_MOST_PLACES = 5_000


def interrupted_everywhere(call: Callable[[int], object], *, every: int = 1) -> Iterator[int]:
    """Run `call(place)` again and again, interrupted one place later each time, until it is not any more.

    Yields after each interrupted call, so that the caller can look at what it left.
    """
    place = 0
    while _interrupted_at(place, call):
        yield place
        place += every
        assert place <= _MOST_PLACES, "the call has no end of places"


def _interrupted_at(place: int, call: Callable[[int], object]) -> bool:
    left = place

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if event not in _PLACES:
            return
        if not left:
            # Also switched off by Python when it raises: one interrupt for each call.
            sys.setprofile(None)
            left = -1
            raise Interrupted
        left -= 1

    # A collection in the middle would end other tests' objects: to interrupt their finalizers proves nothing
    # of this call.
    gc.disable()
    try:
        sys.setprofile(look)
        call(place)
    except Interrupted:
        return True
    finally:
        sys.setprofile(None)
        gc.enable()
    # A place whose interrupt was swallowed (in a weak reference's callback) still was one.
    return left == -1
