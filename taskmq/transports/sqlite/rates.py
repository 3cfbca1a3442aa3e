"""Rate tokens in the file: when each key's next one falls due (policy.limits carried out, P8)."""

from __future__ import annotations

from collections.abc import Iterable

from taskmq.policy.limits import BOOKINGS_PER_TURN, RateState, close_lane, take_token
from taskmq.transports.sqlite.times import micros
from taskmq.transports.sqlite.tx import Tx

OPEN = RateState(0, 0)


class Rates:
    """The rate states one transaction looks at, written back by `save`. Times are microseconds."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._states: dict[str, RateState] = {}
        self._changed: set[str] = set()
        self._booked: dict[str, int] = {}

    def state(self, key: str) -> RateState:
        """The state of a key; open with a token when nothing is stored."""
        known = self._states.get(key)
        if known is None:
            row = self._tx.row("SELECT next_at, closed_until FROM rate WHERE key = ?", (key,))
            known = self._states[key] = OPEN if row is None else RateState._make(row)
        return known

    def take(self, key: str, interval: float) -> int:
        """The time its next start may be: now when it took a token, later when it booked one."""
        at, after = take_token(self.state(key), micros(interval), self._tx.now)
        if at > self._tx.now:
            booked = self._booked[key] = self._booked.get(key, 0) + 1
            if booked >= BOOKINGS_PER_TURN:
                after = close_lane(after, at)
        self._states[key] = after
        self._changed.add(key)
        return int(at)

    def save(self) -> None:
        """Write what changed."""
        if not self._changed:
            return
        self._tx.executemany(
            "INSERT INTO rate(key, next_at, closed_until) VALUES (?, ?, ?) ON CONFLICT(key) DO UPDATE "
            "SET next_at = excluded.next_at, closed_until = excluded.closed_until",
            [
                (k, int(self._states[k].next_at), int(self._states[k].closed_until))
                for k in self._changed
            ],
        )
        self._changed.clear()


def open_keys(tx: Tx, keys: Iterable[str], *, with_token: bool) -> set[str]:
    """Those of `keys` whose lane may be looked at now; with `with_token` only those with a token."""
    rates = Rates(tx)
    if with_token:
        return {key for key in keys if rates.state(key).has_token(tx.now)}
    return {key for key in keys if not rates.state(key).closed(tx.now)}
