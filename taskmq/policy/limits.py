"""Rate limits and concurrency keys as eligibility, never as waiting (P8, P18). Pure.

Rate: a message met at the head without a token books the next token time and is set aside until
then; so tokens go by the order in which messages asked, and a later one, however urgent, gets a later
token (P8). Bookings per turn are capped; past the cap the lane is closed until the last booked time.
A yield takes no token: it is taken at the start.

Concurrency key: at most `limit` due messages of a key are queued, reserved or running. The others
are blocked in sort order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from taskmq.errors import ConfigError

# Bookings in one transaction, and the most held booked per lane before it closes.
BOOKINGS_PER_TURN = 64

_RATE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(?:/\s*([smhd]))?\s*$")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def rate_interval(rate: object, where: str) -> float | None:
    """Seconds between two starts for `"10/m"`, `"2/s"`, `5` (per second); None for no limit (None or 0).

    Raises `ConfigError` naming the value and `where`.
    """
    if rate is None or rate == 0:
        return None
    if not isinstance(rate, bool) and isinstance(rate, (int, float, str)):
        match = _RATE.match(str(rate))
        if match:
            number = float(match[1])
            return _UNITS[match[2] or "s"] / number if number else None
    raise ConfigError(
        f"{where}: a rate is a number per second or like '10/m' (s, m, h, d), got {rate!r}"
    )


class RateState(NamedTuple):
    """When the next token of a key falls due, and until when its lane is closed (0 = open)."""

    next_at: float = 0.0
    closed_until: float = 0.0

    def has_token(self, now: float) -> bool:
        """Whether a message of this key may start at once."""
        return self.next_at <= now and self.closed_until <= now

    def closed(self, now: float) -> bool:
        """Whether a turn has booked as many tokens as it may, so that its lane is left out of the heads."""
        return self.closed_until > now


def take_token(state: RateState, interval: float, now: float) -> tuple[float, RateState]:
    """The time this message may start and the state after: `now` when it takes a token at once."""
    at = max(now, state.next_at)
    return at, RateState(at + interval, state.closed_until)


def close_lane(state: RateState, last_booked: float) -> RateState:
    """The lane after a turn used up its bookings."""
    return RateState(state.next_at, last_booked)


class Holder(NamedTuple):
    """One message that holds a concurrency key: its sort key, and whether it can still be swapped out."""

    seq: int
    sort_key: tuple[int, float, int]
    swappable: bool


def admit(
    arrival: tuple[int, float, int], holders: Sequence[Holder], limit: int
) -> tuple[bool, int | None]:
    """Whether a due message takes its key now, and the sequence of the holder it swaps out, if any.

    A holder that is neither reserved nor running gives way to a more urgent arrival.
    """
    if len(holders) < limit:
        return True, None
    waiting = [h for h in holders if h.swappable]
    if waiting:
        last = max(waiting, key=lambda h: h.sort_key)
        if arrival < last.sort_key:
            return True, last.seq
    return False, None
