"""Rate tokens in the file: when each key's next one falls due (policy.limits carried out, P8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from taskmq.message import Rate
from taskmq.policy.limits import (
    BOOKINGS_PER_TURN,
    RateState,
    adopt_interval,
    as_of,
    close_lane,
    emptied,
    start_booked,
    take_token,
)
from taskmq.transports.sqlite.catalog import Lane
from taskmq.transports.sqlite.times import micros
from taskmq.transports.sqlite.tx import Tx

OPEN = RateState(0, 0, 0, 0)

_STATE = "SELECT next_at, closed_until, last_start, interval FROM rate WHERE key = ?"
_SAVE = (
    "INSERT INTO rate(key, next_at, closed_until, last_start, interval) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT(key) DO UPDATE SET next_at = excluded.next_at, closed_until = excluded.closed_until, "
    "last_start = excluded.last_start, interval = excluded.interval"
)


class Rates:
    """The rate states one transaction looks at, written back by `save`. Times are microseconds."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._states: dict[str, RateState] = {}
        self._changed: set[str] = set()
        self._booked: dict[str, int] = {}

    @property
    def changed(self) -> bool:
        """Whether any state moved in this transaction."""
        return bool(self._changed)

    def state(self, key: str) -> RateState:
        """The state of a key; open with a token when nothing is stored."""
        known = self._states.get(key)
        if known is None:
            row = self._tx.row(_STATE, (key,))
            known = OPEN if row is None else as_of(RateState._make(row), self._tx.now)
            self._states[key] = known
        return known

    def open(self, lane: Lane) -> bool:
        """Whether a reserve looks at this lane now."""
        if lane.rate_key is None:
            return True
        state = self.state(lane.rate_key)
        now = self._tx.now
        return state.may_start(now) if lane.booked else not state.closed(now)

    def has_token(self, lane: Lane) -> bool:
        """Whether a message of this lane may start now."""
        if lane.rate_key is None:
            return True
        state = self.state(lane.rate_key)
        now = self._tx.now
        return state.may_start(now) if lane.booked else state.has_token(now)

    def take(self, key: str, interval: float) -> int:
        """The time its next start may be: now when it took a token, later when it booked one."""
        at, after = take_token(self.state(key), micros(interval), self._tx.now)
        if at > self._tx.now:
            booked = self._booked[key] = self._booked.get(key, 0) + 1
            if booked >= BOOKINGS_PER_TURN:
                after = close_lane(after, at)
        self._put(key, after)
        return int(at)

    def start_booked(self, key: str) -> bool:
        """Start a message whose booked time has come; False while the one before it is too close."""
        state = self.state(key)
        if not state.may_start(self._tx.now):
            return False
        self._put(key, start_booked(state, self._tx.now))
        return True

    def adopt(self, rate: Rate) -> None:
        """Go by the interval of a message that is submitted."""
        before = self.state(rate.key)
        after = adopt_interval(before, micros(rate.interval), self._tx.now)
        if after != before:
            self._put(rate.key, after)

    def empty(self, key: str) -> None:
        """Forget the bookings of a key: nothing waits for them any more."""
        self._put(key, emptied(self.state(key)))

    def _put(self, key: str, state: RateState) -> None:
        self._states[key] = state
        self._changed.add(key)

    def save(self) -> None:
        """Write what changed."""
        if not self._changed:
            return
        self._tx.executemany(_SAVE, [(k, *map(int, self._states[k])) for k in self._changed])
        self._changed.clear()


def adopt_intervals(tx: Tx, rates: Iterable[Rate | None]) -> None:
    """Go by the intervals of messages that are submitted, the last of a key deciding."""
    latest = {rate.key: rate for rate in rates if rate is not None}
    if latest:
        states = Rates(tx)
        for rate in latest.values():
            states.adopt(rate)
        states.save()


def open_now(tx: Tx, *, with_token: bool) -> Callable[[Lane], bool]:
    """Which lanes a reserve looks at; with `with_token` only those that would give it a message."""
    rates = Rates(tx)
    return rates.has_token if with_token else rates.open


def gates(tx: Tx, lanes: Sequence[int]) -> list[int]:
    """When lanes open whose messages are due but wait for the pace of their limit."""
    rates = Rates(tx)
    times = []
    for lane in map(tx.lane, lanes):
        if lane.rate_key is None or not lane.booked:
            continue
        state = rates.state(lane.rate_key)
        if not state.may_start(tx.now) and tx.row(
            "SELECT 1 FROM ready WHERE lane = ? LIMIT 1", (lane.id,)
        ):
            times.append(int(state.gate))
    return times
