"""Time, only through here: so that tests advance it and every part agrees on its unit (seconds)."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """`now()` is wall time as seconds since the epoch, `monotonic()` never steps back."""

    def now(self) -> float:
        """Seconds since the epoch; may be set back by whoever sets the machine's clock."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; only for spans, and only inside this process."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class FakeClock:
    """A clock that moves only when told to. Both of its clocks move together in `advance`."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._wall = start
        self._mono = 1_000.0

    def now(self) -> float:
        return self._wall

    def monotonic(self) -> float:
        return self._mono

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass on both clocks."""
        if seconds < 0:
            raise ValueError(f"time only advances; use step() for a clock jump, got {seconds!r}")
        self._wall += seconds
        self._mono += seconds

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back; monotonic time does not move."""
        self._wall += seconds
