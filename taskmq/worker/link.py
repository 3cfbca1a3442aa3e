"""The coordinator's connection to its transport: back-off, reopening, and the watchdog.

A transport that does not answer costs waiting and never a task: running ones go on, their outcomes are
kept and settled later, leases are renewed as soon as it answers. When no poll (a turn, a renewal)
succeeded for `watchdog` seconds the connection is built anew, and after as long again the worker exits,
for whoever supervises it to start it afresh. A full store is no reason for that: exiting would give up
the outcomes that only wait for room.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from typing import TypeVar

from taskmq.clock import Clock
from taskmq.errors import TransportCorrupt, TransportError, TransportFull, TransportMoved
from taskmq.transports.base import Transport
from taskmq.worker.exits import EXIT_CORRUPT, EXIT_FAILED

log = logging.getLogger("taskmq.worker")

T = TypeVar("T")

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 5.0


class Link:
    """`watchdog` 0 turns the watchdog off."""

    def __init__(
        self, transport: Transport, *, clock: Clock, random: Random, watchdog: float
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._random = random
        self._watchdog = watchdog
        self._failures = 0
        # Since when no poll succeeded; other operations do not count, they may work on a sick store.
        self._silent_since: float | None = None
        self._reopened = False
        self._retry_at = 0.0
        # The exit code once the worker cannot go on.
        self.fatal: int | None = None
        # No room in the store: settle what is done, but take nothing new.
        self.full = False

    def ready(self, now: float) -> bool:
        """Whether it is time to try; False while backing off."""
        return now >= self._retry_at and self.fatal is None

    @property
    def retry_at(self) -> float:
        """Monotonic time of the next try."""
        return self._retry_at

    def attempt(self, what: str, call: Callable[[], T], *, poll: bool = False) -> T | None:
        """The value of `call`, or None when the transport failed; then nothing was changed.

        `poll` marks the operations whose success says that the transport is well.
        """
        try:
            value = call()
        except TransportCorrupt:
            log.critical(
                "the message store is damaged; this worker stops and changes nothing",
                exc_info=True,
                extra={"event": "transport.corrupt"},
            )
            self.fatal = EXIT_CORRUPT
            return None
        except Exception as exc:
            self._failed(what, exc, poll=poll)
            return None
        if poll and self._failures:
            self._recovered()
        return value

    def _failed(self, what: str, exc: Exception, *, poll: bool) -> None:
        now = self._clock.monotonic()
        self._failures += 1
        self.full = isinstance(exc, TransportFull)
        delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** min(self._failures - 1, 16))
        delay *= 1 + self._random.uniform(0, 0.5)
        self._retry_at = now + delay
        # Anything but our own errors is a fault of the adapter: the traceback is needed.
        log.warning(
            "%s failed, trying again in %.2f s: %s",
            what,
            delay,
            exc,
            exc_info=None if isinstance(exc, TransportError) else exc,
            extra={"event": "transport.failed", "operation": what, "failures": self._failures},
        )
        if isinstance(exc, TransportMoved):
            self._reopen()
        elif poll and not self.full:
            self._watch(now)

    def _recovered(self) -> None:
        log.info("the transport answers again", extra={"event": "transport.recovered"})
        self._silent_since = None
        self._failures = 0
        self._reopened = False
        self._retry_at = 0.0
        self.full = False

    def _watch(self, now: float) -> None:
        if self._silent_since is None:
            self._silent_since = now
        if not self._watchdog or now - self._silent_since < self._watchdog:
            return
        if self._reopened:
            log.critical(
                "no successful poll, also not after reconnecting; this worker exits",
                extra={"event": "watchdog.exit"},
            )
            self.fatal = EXIT_FAILED
            return
        log.error(
            "no successful poll for %g s; reconnecting from scratch",
            self._watchdog,
            extra={"event": "watchdog.reconnect"},
        )
        self._reopened = True
        self._silent_since = now
        self._reopen()

    def _reopen(self) -> None:
        try:
            self._transport.close()
            self._transport.open()
        except TransportCorrupt:
            log.critical("the message store is damaged", exc_info=True)
            self.fatal = EXIT_CORRUPT
        except Exception as exc:
            log.warning(
                "the transport could not be opened again: %s",
                exc,
                exc_info=None if isinstance(exc, TransportError) else exc,
            )
