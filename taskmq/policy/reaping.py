"""Which expired leases are really lost (reliability facts 11-12). Pure.

Deadlines are stored in wall time, so a clock that jumps forward would expire every lease at once.
A lease counts as lost only when two looks, at least a third of a lease apart on the looker's own
monotonic clock, both found the same token expired; and after the two clocks drifted apart none is
lost for one whole lease. A clock that jumps back would make them immortal: so a lease that nobody renews
also expires when the time it had left at its first look, at most its length, has passed on the monotonic
clock.
"""

from __future__ import annotations

from collections.abc import Iterable

_DRIFT = 1.0


class LeaseWatch:
    """Remembers, per (sequence, token), when an expired lease was first seen."""

    def __init__(self, lease: float) -> None:
        self._gap = lease / 3
        self._first: dict[tuple[int, int], float] = {}
        # (sequence, token) -> its deadline in wall time, and on our own clock.
        self._deadlines: dict[tuple[int, int], tuple[float, float]] = {}
        self._last_look: tuple[float, float] | None = None
        self._not_before = 0.0
        self._lease = lease

    def expired(
        self, held: Iterable[tuple[int, int, float, float]], *, now: float, monotonic: float
    ) -> list[tuple[int, int]]:
        """Of all leases there are, as `(sequence, token, lease_until, length)`, those that have ended."""
        known, self._deadlines = self._deadlines, {}
        out = []
        for seq, token, until, length in held:
            key = (seq, token)
            wall, mono = known.get(key, (None, 0.0))
            if wall != until:
                mono = monotonic + min(until - now, length)
            self._deadlines[key] = (until, mono)
            if until <= now or mono <= monotonic:
                out.append(key)
        return out

    def lost(
        self, expired: Iterable[tuple[int, int]], *, now: float, monotonic: float
    ) -> list[tuple[int, int]]:
        """Of the leases found expired at this look, those that may be taken away."""
        if self._last_look is not None:
            wall, mono = self._last_look
            if abs((now - wall) - (monotonic - mono)) > _DRIFT:
                # The wall clock jumped: every deadline is suspect for one whole lease.
                self._not_before = monotonic + self._lease
        self._last_look = (now, monotonic)
        seen = set(expired)
        self._first = {key: at for key, at in self._first.items() if key in seen}
        out = []
        for key in seen:
            first = self._first.setdefault(key, monotonic)
            if monotonic - first >= self._gap and monotonic >= self._not_before:
                out.append(key)
        return sorted(out)


def duty_is_free(until: float, ttl: float, now: float) -> bool:
    """Whether a duty held until then for `ttl` may be taken over: its time is up, or it has more left than
    it was taken for, so that the clock was set back since."""
    return until <= now or until - now > ttl
