"""How often a pool child is started again that did not get ready: after 1, 2, 4 … 30 s, one at a time."""

from __future__ import annotations

import logging

from taskmq.clock import Clock

log = logging.getLogger("taskmq.pool")

FIRST_BACKOFF = 1.0
LAST_BACKOFF = 30.0
# Attempts before the pool gives up, as long as no child ever started.
BOOT_ATTEMPTS = 5


class Starts:
    """The back-off of one pool's starts. Times are monotonic."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ever_ready = False
        #: Starts that failed since one last succeeded.
        self.failures = 0
        #: When the next is tried; None while there is nothing to wait for.
        self.retry_at: float | None = None
        #: Why the pool gave up, or None.
        self.broken: str | None = None

    def failed(self, how: str) -> None:
        """A child was lost before it was ready, or could not be made."""
        if self.retry_at is not None:
            return  # one of several that failed together
        self.failures += 1
        if not self._ever_ready and self.failures >= BOOT_ATTEMPTS:
            self.broken = f"no pool child starts: it {how}, {self.failures} times"
            return
        delay = min(LAST_BACKOFF, FIRST_BACKOFF * 2 ** (self.failures - 1))
        self.retry_at = self._clock.monotonic() + delay
        log.error(
            "a pool child %s before it was ready; the next is tried in %g s",
            how,
            delay,
            extra={"event": "child.start_failed", "failures": self.failures},
        )

    def succeeded(self) -> bool:
        """A child is ready; whether others wait for that."""
        self._ever_ready = True
        others_wait = self.failures > 0
        self.failures = 0
        self.retry_at = None
        return others_wait

    def allowed(self, missing: int, *, starting: bool) -> int:
        """How many of the missing children are started now; `starting`: whether any is on its way."""
        if self.broken is not None:
            return 0
        if self.failures:
            return 0 if starting else min(1, missing)
        return missing
