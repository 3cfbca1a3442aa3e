"""When leases are renewed: every third of a lease, whatever the tasks do, and sooner after a failure."""

from __future__ import annotations

_RETRY = 1.0


class Renewal:
    """The timer of the renewals of one worker. Times are monotonic."""

    def __init__(self, lease: float, now: float) -> None:
        self._interval = lease / 3
        self._retry = min(_RETRY, self._interval / 3)
        self.next_at = now + self._interval

    def due(self, now: float) -> bool:
        """Whether to renew now."""
        return now >= self.next_at

    def done(self, now: float) -> None:
        """All that is held was renewed, or nothing was held."""
        self.next_at = now + self._interval

    def failed(self, now: float) -> None:
        """The transport did not answer: two more tries fit before a lease ends."""
        self.next_at = now + self._retry
