"""Whom to hand back when something more urgent waits (G2, P12-P14). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from taskmq.message import Delivery

# A share of the delay, so that deliveries yielded together do not come back together.
JITTER = 0.5


def to_yield(
    unstarted: Sequence[Delivery],
    *,
    peeked: int | None,
    room: int,
    min_delta: int = 1,
) -> list[Delivery]:
    """The fewest unstarted deliveries to hand back so that one of priority `peeked` can be reserved.

    `room` is how many more deliveries the worker may hold as it is. Lowest priority first, the latest
    of equals first; only yieldable ones that `peeked` exceeds by at least `min_delta` (P12). Empty
    when there is room already or nothing qualifies.
    """
    if peeked is None or room > 0:
        return []
    candidates = [
        d for d in unstarted if d.yieldable and not d.started and peeked - d.effective >= min_delta
    ]
    if not candidates:
        return []
    return [max(candidates, key=lambda d: d.sort_key)]


def yield_delay(base: float, random: Random) -> float:
    """The not-before of a yielded message: `yield_delay` plus up to half of it (P14)."""
    return base * (1 + random.uniform(0, JITTER))


def stays_yieldable(yields: int, max_yields: int) -> bool:
    """Whether a message yielded `yields` times, this one included, may be yielded again (P14)."""
    return yields < max_yields
