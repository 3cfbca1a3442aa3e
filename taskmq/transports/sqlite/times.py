"""Seconds and microseconds: the file keeps integers, so that comparing never depends on rounding."""

from __future__ import annotations

from typing import overload


def micros(seconds: float) -> int:
    """Microseconds, rounded the same way everywhere: what is due at `now` is due in the file too."""
    return int(seconds * 1_000_000 + 0.5)


@overload
def seconds(micros: int) -> float: ...
@overload
def seconds(micros: None) -> None: ...
def seconds(micros: int | None) -> float | None:
    """Seconds since the epoch."""
    return None if micros is None else micros / 1_000_000
