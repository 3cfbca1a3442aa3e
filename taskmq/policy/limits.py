"""Rate limits and concurrency keys as eligibility, never as waiting (P8, P18). Pure.

Rate: a message met at the head without a token books the next token time and is set aside until
then; so tokens go by the order in which messages asked, and a later one, however urgent, gets a later
token (P8). Bookings per turn are capped; past the cap the lane is closed until the last booked time.
A yield takes no token: it is taken at the start.

A booked time is the earliest start, not a right to one: workers may have been away or busy while several
fell due. What holds whatever the gaps is the gate: no start before one interval has passed since the last.
Booked messages that are due share a lane of their own, which is open while the gate is.

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
# A rate state nothing was due of for so many seconds is forgotten, and with it which interval came last.
RATE_KEPT = 86_400.0

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
    """What is known of one rate key; all in one unit of time.

    next_at       when the next token falls due
    closed_until  until when its lane of messages without a booking is closed (0 = open)
    last_start    when the last message of it started
    interval      of the message submitted last (0 = not known): a changed limit holds for all at once
    """

    next_at: float = 0.0
    closed_until: float = 0.0
    last_start: float = 0.0
    interval: float = 0.0

    @property
    def gate(self) -> float:
        """Before this no message of the key starts, booked or not."""
        return self.last_start + self.interval

    def may_start(self, now: float) -> bool:
        """Whether a message whose booked time has come may start."""
        return self.gate <= now

    def has_token(self, now: float) -> bool:
        """Whether a message without a booking may start."""
        return max(self.next_at, self.closed_until, self.gate) <= now

    def closed(self, now: float) -> bool:
        """Whether messages without a booking are not even looked at."""
        return self.closed_until > now

    def forgettable(self, now: float, kept: float) -> bool:
        """Whether nothing has been due for so long that the state need not be kept."""
        return max(self.next_at, self.closed_until, self.gate) <= now - kept


def take_token(state: RateState, interval: float, now: float) -> tuple[float, RateState]:
    """The time this message may start and the state after: `now` when it starts with a token at once.

    `interval` counts only where the key's own is not known.
    """
    interval = state.interval or interval
    at = max(now, state.next_at, state.last_start + interval)
    last_start = now if at <= now else state.last_start
    return at, RateState(at + interval, state.closed_until, last_start, interval)


def start_booked(state: RateState, now: float) -> RateState:
    """The state after a message started whose booked time had come."""
    return state._replace(next_at=max(state.next_at, now + state.interval), last_start=now)


def close_lane(state: RateState, last_booked: float) -> RateState:
    """The lane after a turn used up its bookings."""
    return state._replace(closed_until=last_booked)


def adopt_interval(state: RateState, interval: float, now: float) -> RateState:
    """The state once a message of this interval was submitted.

    A changed limit does not wait for the tokens of the old one. What is booked keeps its time, and the gate
    keeps the starts apart.
    """
    if state.interval == interval:
        return state
    if not state.interval:
        return state._replace(interval=interval)
    return RateState(min(state.next_at, now + interval), 0.0, state.last_start, interval)


def emptied(state: RateState) -> RateState:
    """The state once nothing waits for the bookings any more: only the pace is left."""
    return state._replace(next_at=0.0, closed_until=0.0)


def as_of(state: RateState, now: float) -> RateState:
    """The state a reader may go by: one whose last start is yet to come was written before the clock was
    set back, and its times would hold everything up for as long."""
    return state if state.last_start <= now else RateState(interval=state.interval)


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
