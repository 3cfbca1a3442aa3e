"""One message out of ready: taken under a lease, or ended, buried or set aside, all in the transaction.

So a look at the heads afterwards never meets a row again that a reserve has met.
"""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any, NamedTuple

from taskmq.errors import DecodeError
from taskmq.failpoints import Failpoint, failpoint
from taskmq.message import Delivery, Message
from taskmq.policy import endings
from taskmq.states import State
from taskmq.transports.base import ReserveRequest
from taskmq.transports.sqlite.catalog import Lane
from taskmq.transports.sqlite.endings import end
from taskmq.transports.sqlite.mending import Malformed
from taskmq.transports.sqlite.places import DELETE_READY, schedule
from taskmq.transports.sqlite.rates import Rates
from taskmq.transports.sqlite.rows import M_COLUMNS, UNREADABLE, Place, salvage, to_message
from taskmq.transports.sqlite.times import micros
from taskmq.transports.sqlite.tx import Tx

log = logging.getLogger("taskmq.sqlite")

#: What `Taking.take` reads: a place in ready, and the message.
ROW_COLUMNS = (
    "r.seq, r.lane, r.npri, r.visible_at, r.deliveries, r.yields, r.yieldable, r.expires_at, "
    f"r.keyed, {M_COLUMNS}"
)
_PLACE_WIDTH = len(Place._fields)
# A message that cannot be read is tried again after so long (microseconds).
_READ_AGAIN = 60_000_000

_HOLD = (
    "INSERT INTO reserved(seq, token, worker, reserved_at, lease_until, lease, started_at, lane, npri, "
    "visible_at, deliveries, yields, yieldable, expires_at, keyed) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Taken(NamedTuple):
    """A message that passed every check: its row of reserved, and the delivery."""

    row: tuple[Any, ...]
    delivery: Delivery


class Taking:
    """What one reserve takes. `deliveries` are those held so far, `ended` counts what it met and ended."""

    def __init__(self, tx: Tx, request: ReserveRequest, rates: Rates) -> None:
        self._tx = tx
        self._worker = request.worker
        self._rates = rates
        self._lease = micros(request.lease)
        self._lease_until = tx.now + self._lease
        self._rows: list[tuple[Any, ...]] = []
        self.deliveries: list[Delivery] = []
        self.ended = 0

    def keep(self, taken: Taken) -> None:
        """Hold it; the order of calls is the order of the deliveries."""
        self._rows.append(taken.row)
        self.deliveries.append(taken.delivery)

    def save(self) -> None:
        """Write what is held."""
        if len(self._rows) == 1:
            self._tx.execute(_HOLD, self._rows[0])
        elif self._rows:
            self._tx.executemany(_HOLD, self._rows)
        if self._rows:
            failpoint(Failpoint.IN_CLAIM)

    def take(self, row: Any, effective: int, *, start: bool) -> Taken | None:
        """Take a row of `ROW_COLUMNS` out of ready; None when it ended, died or was set aside instead."""
        tx = self._tx
        place = Place._make(row[:_PLACE_WIDTH])
        seq, lane_id, npri, visible_at, deliveries, yields, yieldable, expires_at, keyed = place
        tx.execute(DELETE_READY, (lane_id, npri, visible_at, seq))
        try:
            if not place.sound:
                raise Malformed(f"it waits at {place!r:.200}")
            message = to_message(row[_PLACE_WIDTH:], tx.names_of)
        except Malformed as exc:
            self._bury(place, row[_PLACE_WIDTH:], exc)
            return None
        except UNREADABLE:
            self._put_off(place)
            return None
        lane = tx.lane(lane_id)
        if not (
            (expires_at is None or expires_at > tx.now)
            and not tx.any_revoked
            and deliveries < message.max_deliveries
            and lane.rate_key is None
        ) and not self._passes(place, message, lane, start=start):
            return None
        # From the system, not the injected generator: a forked copy of that would repeat tokens.
        token = int.from_bytes(os.urandom(8), "big") >> 2
        return Taken(
            (
                seq,
                token,
                self._worker,
                tx.now,
                self._lease_until,
                self._lease,
                tx.now if start else None,
                lane_id,
                npri,
                visible_at,
                deliveries + 1,
                yields,
                yieldable,
                expires_at,
                keyed,
            ),
            Delivery(
                message=message,
                token=token,
                seq=seq,
                visible_at=visible_at / 1_000_000,
                lease_until=self._lease_until / 1_000_000,
                deliveries=deliveries + 1,
                yields=yields,
                yieldable=bool(yieldable),
                effective=effective,
                started=start,
            ),
        )

    def _passes(self, place: Place, message: Message, lane: Lane, *, start: bool) -> bool:
        """Whether a message may be taken that is not a plain one; else it was ended or set aside."""
        tx = self._tx
        if place.expires_at is not None and place.expires_at <= tx.now:
            self._end(place, message, endings.expired(message, **tx.ending()))
        elif tx.any_revoked and (reason := tx.revocation(message.task_id)) is not None:
            self._end(place, message, endings.revoked(message, reason, **tx.ending()))
        elif place.deliveries >= message.max_deliveries:
            how = endings.dead(message, place.deliveries, **tx.ending())
            self._end(place, message, how, reason=endings.CRASH_LOOP)
        else:
            return lane.rate_key is None or self._has_token(place, message, lane, start=start)
        return False

    def _end(self, place: Place, message: Message, how: endings.Ended, *, reason: str = "") -> None:
        self.ended += 1
        end(
            self._tx,
            place.seq,
            message,
            how,
            reason=reason,
            deliveries=place.deliveries,
            yields=place.yields,
        )

    def _has_token(self, place: Place, message: Message, lane: Lane, *, start: bool) -> bool:
        """Whether it may go on now; else it is booked and set aside (P8)."""
        if not start and self._rates.has_token(lane):
            return True
        assert message.rate is not None
        if lane.booked:
            # Its lane is open, and its start closes it.
            started = self._rates.start_booked(message.rate.key)
            assert started
            return True
        at = self._rates.take(message.rate.key, message.rate.interval)
        if at <= self._tx.now:
            return True
        schedule(self._tx, place._replace(lane=self._tx.booked_lane(place.lane)), at)
        return False

    def _bury(self, place: Place, row: Any, fault: Malformed) -> None:
        """A row no version wrote ends as a dead letter with what is left of it (row 33)."""
        try:
            message = salvage(row, self._tx.names_of)
        except UNREADABLE:
            self._put_off(place)
            return
        if not place.sound:
            place = place._replace(deliveries=0, yields=0, expires_at=None)
        # A dead letter is found by its queue, and the place's lane is one that exists.
        self._tx.execute("UPDATE message SET lane = ? WHERE seq = ?", (place.lane, place.seq))
        message = replace(message, queue=self._tx.lane(place.lane).queue)
        error = DecodeError(f"the stored message is malformed: {fault}")
        log.error(
            "message %d is malformed and buried; the others go on: %s",
            place.seq,
            fault,
            extra={"action": "bad-row"},
        )
        how = endings.end(message, State.DEAD, error, **self._tx.ending())
        self._end(place, message, how, reason=endings.UNREADABLE)

    def _put_off(self, place: Place) -> None:
        """A row this version cannot read waits for one that can; it must not stop the queue."""
        schedule(self._tx, place, self._tx.now + _READ_AGAIN)
        self.ended += 1
        log.exception(
            "message %d cannot be read and is put off; the others go on",
            place.seq,
            extra={"action": "bad-row"},
        )
