"""The duties that one worker at a time does for all: reaping, sweeping, checkpoints, depth samples.

Whoever holds the duty renews it; when it dies the duty falls free after its time and another worker
takes it up. Between its rounds nothing is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from taskmq.clock import Clock
from taskmq.coordination.base import Coordination, Maintained
from taskmq.events import QUEUE_DEPTH, QUEUE_STARVING, EventLog
from taskmq.printable import printable
from taskmq.transports.base import Transport
from taskmq.transports.operators import Depth

log = logging.getLogger("taskmq.maintenance")

DUTY = "maintenance"

SWEEP_INTERVAL = 5.0
CHECKPOINT_INTERVAL = 10.0
# The watch wants two looks at least a third of a lease apart; a hair more, so that rounding does not cost
# a whole round.
_LOOK_MARGIN = 1.01


class _Round:
    """One kind of work and when it is due next."""

    __slots__ = ("call", "interval", "name", "next_at")

    def __init__(self, name: str, call: Callable[[], Maintained], interval: float) -> None:
        self.name = name
        self.call = call
        self.interval = interval
        self.next_at = 0.0


class Maintenance:
    """The maintenance of one worker: does nothing while another holds the duty."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        holder: str,
        lease: float,
        events: EventLog,
        depth_interval: float,
        starvation_after: float,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._holder = holder
        self._events = events
        self._starvation_after = starvation_after
        self._starving: set[tuple[str, int]] = set()
        # As long as a lease: when the holder dies, its duty falls free with its deliveries.
        self._ttl = max(lease, 1.0)
        self._held_until = 0.0
        self._ask_at = 0.0
        coordination: Coordination = transport.coordination
        self._rounds = [
            _Round("reap", coordination.reap, lease / 3 * _LOOK_MARGIN),
            _Round("sweep", coordination.sweep, SWEEP_INTERVAL),
            _Round("checkpoint", coordination.checkpoint, CHECKPOINT_INTERVAL),
        ]
        if events.on and depth_interval:
            self._rounds.append(_Round("depth", self._sample, depth_interval))

    def next_at(self) -> float:
        """Monotonic time of the next thing to do."""
        if self._held_until <= self._clock.monotonic():
            return self._ask_at
        return min(self._ask_at, min(r.next_at for r in self._rounds))

    def run(self) -> bool:
        """Do what is due; whether there is more of it to do at once. Raises `TransportError`."""
        now = self._clock.monotonic()
        if now >= self._ask_at:
            # Asked again at half its time, so that a held duty never falls free.
            self._ask_at = now + self._ttl / 2
            held = self._transport.coordination.take_duty(DUTY, self._holder, self._ttl)
            self._held_until = now + self._ttl if held else 0.0
        if now >= self._held_until:
            return False
        again = False
        for due in self._rounds:
            if now < due.next_at:
                continue
            # Before the call: one that fails is not tried at every step, and keeps no other from its turn.
            due.next_at = now + due.interval
            done = due.call()
            if done.more:
                due.next_at = now
            again = again or done.more
            if done.done:
                event = f"maintenance.{due.name}"
                log.debug("%s: %d", due.name, done.done, extra={"event": event, "done": done.done})
                for note in done.notes:
                    log.warning("%s", printable(note), extra={"event": event})
        return again

    def drop(self) -> None:
        """Give the duty up, for the next worker to take at once. Raises `TransportError`."""
        self._held_until = 0.0
        self._transport.coordination.drop_duties(self._holder)

    # -- depth ------------------------------------------------------------------------------------

    def _sample(self) -> Maintained:
        now = self._clock.now()
        by_queue: dict[str, list[Depth]] = {}
        for depth in self._transport.operators.depth():
            by_queue.setdefault(depth.queue, []).append(depth)
        starving: set[tuple[str, int]] = set()
        for queue, bands in by_queue.items():
            self._events.add(QUEUE_DEPTH, queue=queue, bands=[band_fields(d, now) for d in bands])
            for depth in bands:
                if starves(depth, now, self._starvation_after):
                    starving.add((queue, depth.priority))
                    self._starves(depth, now)
        self._starving = starving
        return Maintained()

    def _starves(self, depth: Depth, now: float) -> None:
        age = now - (depth.oldest_at or now)
        self._events.add(
            QUEUE_STARVING,
            queue=depth.queue,
            priority=depth.priority,
            ready=depth.ready,
            oldest_age=round(age, 3),
        )
        if (depth.queue, depth.priority) not in self._starving:
            log.warning(
                "queue %s starves at priority %d: %d waiting, the oldest for %.0f s",
                printable(depth.queue),
                depth.priority,
                depth.ready,
                age,
                extra={"event": QUEUE_STARVING},
            )


def band_fields(depth: Depth, now: float) -> dict[str, object]:
    """One band of a `queue.depth` event."""
    age = None if depth.oldest_at is None else round(max(0.0, now - depth.oldest_at), 3)
    return {
        "priority": depth.priority,
        "ready": depth.ready,
        "scheduled": depth.scheduled,
        "reserved": depth.reserved,
        "running": depth.running,
        "blocked": depth.blocked,
        "oldest_age": age,
    }


def starves(depth: Depth, now: float, after: float) -> bool:
    """Whether the oldest claimable message of a band has waited longer than `after` seconds."""
    return depth.oldest_at is not None and now - depth.oldest_at > after
