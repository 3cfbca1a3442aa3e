"""What a worker asks for in a turn, and whom it hands back first (G1, G2, P12-P17)."""

from __future__ import annotations

from functools import partial
from random import Random

from taskmq.failpoints import Failpoint, failpoint
from taskmq.message import Delivery
from taskmq.policy.yielding import to_yield, yield_delay
from taskmq.transports.base import ReserveRequest, Transport
from taskmq.worker.holding import Holding
from taskmq.worker.link import Link
from taskmq.worker.reporting import Reporter
from taskmq.worker.rules import Rules


class Reserving:
    """Builds the requests of one worker; those of a plain worker are built once and kept."""

    def __init__(self, rules: Rules, held: Holding) -> None:
        self._rules = rules
        self._held = held
        self._plain: dict[tuple[int, int], ReserveRequest] = {}

    def request(self, free: int, *, prefetch: bool) -> ReserveRequest | None:
        """What to ask for with this many free slots; None when there is no slot and no room.

        `prefetch` False asks for nothing that cannot start at once.
        """
        rules, held = self._rules, self._held
        running = len(held.running)
        slots = min(free, max(0, rules.prefetch - running))
        room = rules.prefetch - running - held.unstarted - slots
        if room < 0 or not prefetch:
            room = 0
        if not slots and not room:
            return None
        if not held.unstarted and not rules.bounded:
            plain = self._plain.get((slots, room))
            if plain is None:
                plain = self._plain[slots, room] = self._build(slots, room, ())
            return plain
        return self._build(slots, room, self._candidates(slots))

    def _candidates(self, slots: int) -> tuple[Delivery, ...]:
        """The unstarted deliveries a turn may start."""
        if not slots:
            return ()
        waiting = tuple(self._held.waiting())
        # Under slot budgets any of them may be the one that fits. Otherwise it is one of the first; a few
        # more, because some may turn out to be revoked.
        return waiting if self._rules.bounded else waiting[: 2 * slots]

    def _build(self, slots: int, room: int, waiting: tuple[Delivery, ...]) -> ReserveRequest:
        return ReserveRequest(
            worker=self._rules.name,
            queues=self._rules.queues,
            slots=slots,
            room=room,
            budget=self._rules.budget(self._held.priorities()),
            lease=self._rules.lease,
            waiting=waiting,
            aging=self._rules.aging,
        )


def make_room(
    transport: Transport,
    link: Link,
    rules: Rules,
    held: Holding,
    reporter: Reporter,
    random: Random,
) -> bool:
    """Hand back the fewest unstarted deliveries when something more urgent waits; whether any was.

    Costs one peek, and only while everything that may be held is held.
    """
    room = rules.prefetch - len(held)
    window = rules.budget(held.priorities()).window()
    if room > 0 or window is None:
        return False
    peek = partial(transport.peek_max_priority, rules.queues, window=window, aging=rules.aging)
    peeked = link.attempt("a peek", peek)
    if peeked is None:
        return False
    chosen = to_yield(
        list(held.waiting()), peeked=peeked, room=room, min_delta=rules.yield_min_delta
    )
    for delivery in chosen:
        delay = yield_delay(rules.yield_delay, random)
        failpoint(Failpoint.BEFORE_YIELD)
        give = partial(transport.yield_reservation, delivery, delay=delay)
        given = link.attempt("a yield", give)
        if given is None:
            return False
        held.drop(delivery)
        if given:
            reporter.yielded(delivery, peeked)
        else:
            reporter.lease_lost(delivery, "before it started")
    return bool(chosen)
