"""Interrupting a call at each place where Python could raise what interrupts a thread."""

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


_MOST_PLACES = 5_000


def interrupted_everywhere(call: Callable[[int], object], *, every: int = 1) -> Iterator[int]:
    """Run `call(place)` again and again, interrupted one place later each time, until it is not any more.

    Yields after each interrupted call, so that the caller can look at what it left.
    """
    place = 0
    while _interrupted_at(place, call):
        yield place
        place += every


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
            if place > _MOST_PLACES:
                raise AssertionError(
                    f"the call has no end of places; now {event} in {frame}: {argument}"
                )
            raise Interrupted
        left -= 1

    # A collection in the middle would end other tests' objects: to interrupt their finalizers proves nothing
    # of this call, and some of them then wait for ever.
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
