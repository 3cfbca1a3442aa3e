"""Makes the engine of a process say what it does; installed by the project, no part of the product.

What may change a message is logged before the call and what was achieved after it, so that the checker knows
what a kill in between may have left out. Times of the store are turned into monotonic ones at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from taskmq.message import Delivery
from taskmq.transports.base import Outcome, ReserveRequest, Turn
from taskmq.transports.sqlite import SQLiteTransport
from tests.stress.log import Log, to_monotonic


def install(log: Log) -> None:
    """Wrap the verbs by which a worker takes, keeps and gives back messages."""
    turn = SQLiteTransport.turn
    extend = SQLiteTransport.extend
    give_back = SQLiteTransport.yield_reservation

    def logged_turn(
        self: SQLiteTransport, outcomes: Sequence[Outcome], request: ReserveRequest | None
    ) -> Turn:
        since = time.monotonic()
        for outcome in outcomes:
            log.write("settling", verb=outcome.verb.value, **_of(outcome.delivery))
        # An idle turn only reads; it is said all the same, for what it will be is not known yet.
        log.write("turning")
        done = turn(self, outcomes, request)
        lost = {(d.seq, d.token) for d in done.lost}
        for outcome in outcomes:
            delivery = outcome.delivery
            kept = (delivery.seq, delivery.token) not in lost
            log.write(
                "settled" if kept else "stale",
                verb=outcome.verb.value,
                counted=outcome.counted,
                since=since,
                **_of(delivery),
            )
        waiting = {d.token for d in request.waiting} if request is not None else set()
        lease = request.lease if request is not None else 0.0
        # Once for all of a transaction: they were claimed together.
        new = {d.lease_until for d in done.deliveries if d.token not in waiting}
        ends = {until: to_monotonic(until) for until in new}
        for delivery in done.deliveries:
            if delivery.token in waiting:
                log.write("started", since=since, **_of(delivery))
            else:
                _claimed(log, delivery, until=ends[delivery.lease_until], lease=lease)
        log.write("turned")
        return done

    def logged_extend(
        self: SQLiteTransport, deliveries: Sequence[Delivery], lease: float
    ) -> tuple[Delivery, ...]:
        since = time.monotonic()
        lost = extend(self, deliveries, lease)
        tokens = {d.token for d in lost}
        for delivery in deliveries:
            if delivery.token in tokens:
                log.write("stale", verb="extend", since=since, **_of(delivery))
            else:
                # At least until then: the transaction read its clock after this one was read.
                log.write("renewed", until=since + lease, since=since, **_of(delivery))
        return lost

    def logged_yield(self: SQLiteTransport, delivery: Delivery, *, delay: float) -> bool:
        since = time.monotonic()
        log.write("settling", verb="yield", **_of(delivery))
        done = give_back(self, delivery, delay=delay)
        what = "settled" if done else "stale"
        log.write(what, verb="yield", counted=False, since=since, **_of(delivery))
        return done

    SQLiteTransport.turn = logged_turn  # type: ignore[method-assign]
    SQLiteTransport.extend = logged_extend  # type: ignore[method-assign]
    SQLiteTransport.yield_reservation = logged_yield  # type: ignore[method-assign]


def _of(delivery: Delivery) -> dict[str, Any]:
    return {"id": delivery.message.task_id, "token": delivery.token}


def _claimed(log: Log, delivery: Delivery, *, until: float, lease: float) -> None:
    log.write(
        "claimed",
        # The lease began when the transaction read its clock.
        at=until - lease,
        until=until,
        started=delivery.started,
        priority=delivery.message.priority,
        deliveries=delivery.deliveries,
        retries=delivery.message.retries,
        **_of(delivery),
    )
