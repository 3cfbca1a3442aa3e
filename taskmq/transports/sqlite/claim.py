"""One reserve: which message next is policy's word, fetching and writing is done here (G1, P2, P3, P8).

Every row that is met is dealt with at once, in the transaction: taken, ended because it expired or was
revoked, buried, or set aside until its rate token. So a look at the heads afterwards never meets it again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, NamedTuple

from taskmq.errors import DecodeError
from taskmq.failpoints import Failpoint, failpoint
from taskmq.message import Delivery, Message
from taskmq.policy import endings
from taskmq.policy.bands import Window, local_first
from taskmq.states import State
from taskmq.transports.base import ReserveRequest
from taskmq.transports.sqlite.catalog import NO_LANES, Lane
from taskmq.transports.sqlite.due import any_due, promote
from taskmq.transports.sqlite.endings import end
from taskmq.transports.sqlite.heads import Level, open_lanes, top_level
from taskmq.transports.sqlite.leases import start_one
from taskmq.transports.sqlite.mending import Malformed
from taskmq.transports.sqlite.places import DELETE_READY, schedule
from taskmq.transports.sqlite.rates import Rates
from taskmq.transports.sqlite.rotation import Rotation
from taskmq.transports.sqlite.rows import M_COLUMNS, UNREADABLE, Place, salvage, to_message
from taskmq.transports.sqlite.times import micros
from taskmq.transports.sqlite.tx import Tx

log = logging.getLogger("taskmq.sqlite")

# Messages ended in one transaction because they expired at a head: some 10 ms. The next turn goes on.
ENDED_PER_TURN = 256
# Once a head was found expired, many behind it are likely to be.
_MORE_ROWS = 32

# A message that cannot be read is tried again after so long (microseconds).
_READ_AGAIN = 60_000_000

_PLACE_WIDTH = len(Place._fields)
_FETCH = (
    "SELECT r.seq, r.lane, r.npri, r.visible_at, r.deliveries, r.yields, r.yieldable, r.expires_at, "  # noqa: S608
    f"r.keyed, {M_COLUMNS} FROM ready r CROSS JOIN message m ON m.seq = r.seq "
    "WHERE r.lane = ? AND r.npri = ? ORDER BY r.visible_at, r.seq LIMIT ?"
)
# The same of the highest band of a lane: one statement instead of two, for a worker of one queue.
_FETCH_TOP = _FETCH.replace(
    "r.npri = ?",
    "r.npri = (SELECT npri FROM ready WHERE lane = ? AND npri BETWEEN ? AND ? ORDER BY npri LIMIT 1)",
)
_HOLD = (
    "INSERT INTO reserved(seq, token, worker, reserved_at, lease_until, lease, started_at, lane, npri, "
    "visible_at, deliveries, yields, yieldable, expires_at, keyed) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class _Met(NamedTuple):
    place: Place
    message: Message


class Claim:
    """Fills the free slots, then the room for unstarted deliveries, of one request."""

    def __init__(self, tx: Tx, request: ReserveRequest) -> None:
        self._tx = tx
        self._request = request
        self._budget = request.budget
        self._lanes = NO_LANES
        self._rates = Rates(tx)
        self._ended = 0
        self._held: list[tuple[Any, ...]] = []
        self._lease = micros(request.lease)
        self._lease_until = tx.now + self._lease
        self.deliveries: list[Delivery] = []
        self.refused: list[Delivery] = []

    def run(self) -> None:
        """Carry it out; the result is in `deliveries` and `refused`."""
        self._tx.refresh()
        if self._tx.any_scheduled:
            promote(self._tx)
        self._lanes = open_lanes(self._tx, self._request.queues)
        self._fill_slots()
        self._fill_room()
        if len(self._held) == 1:
            self._tx.execute(_HOLD, self._held[0])
            failpoint(Failpoint.IN_CLAIM)
        elif self._held:
            self._tx.executemany(_HOLD, self._held)
            failpoint(Failpoint.IN_CLAIM)
        self._rates.save()

    def _fill_slots(self) -> None:
        waiting = sorted(self._request.waiting, key=lambda d: d.sort_key)
        slots = self._request.slots
        while slots > 0 and not self._spent():
            window = self._budget.window()
            if window is None:
                return
            level = self._level(window, slots)
            local = None
            if waiting:
                local = next((d for d in waiting if window.admits(d.effective)), None)
            if local is not None and local_first(
                local.effective, level.effective if level else None
            ):
                waiting.remove(local)
                slots -= self._start_local(local)
            elif level is not None:
                fitting = self._budget.room(level.effective)
                count = slots if fitting is None else min(slots, fitting)
                taken = self._take(level, count, start=True)
                if self._budget.bounded:
                    for _ in range(taken):
                        self._budget = self._budget.take(level.effective)
                slots -= taken
            else:
                return

    def _fill_room(self) -> None:
        # Held unstarted is only what a slot could take next; it takes no token before it starts (P18).
        room = self._request.room
        window = self._budget.window()
        while room > 0 and window is not None and not self._spent():
            level = self._level(window, room)
            if level is None:
                return
            room -= self._take(level, room, start=False)

    def _start_local(self, local: Delivery) -> int:
        started = start_one(self._tx, local, self._rates)
        if started is None:
            self.refused.append(local)
            return 0
        self.deliveries.append(started)
        self._budget = self._budget.take(local.effective)
        return 1

    def _spent(self) -> bool:
        if self._ended < ENDED_PER_TURN:
            return False
        self._tx.more = True
        return True

    def _level(self, window: Window, count: int) -> Level | None:
        if self._rates.changed:
            self._lanes = self._lanes.only(self._rates.open)
        lanes = self._lanes.lanes
        if len(lanes) == 1 and self._request.aging is None:
            (lane,) = lanes
            top = (lane.id, lane.id, -window.high, -window.low, count)
            rows = self._tx.execute(_FETCH_TOP, top).fetchall()
            if not rows:
                return None
            npri = rows[0][2]
            return Level(-npri, {lane.queue: [(lane.id, npri)]}, rows)
        return top_level(self._tx, self._lanes, window, self._request.aging)

    def _take(self, level: Level, count: int, *, start: bool) -> int:
        """Take up to `count` of this level, its queues in rotation; how many there were."""
        effective, sources, known = level
        if len(sources) == 1:
            (only,) = sources.values()
            rows = self._next(only, count, effective, start=start, known=known)
            for met in rows:
                self._hold(met, effective, start=start)
            return len(rows)
        rotation = Rotation(self._tx)
        picks = rotation.pick(self._request.queues, sources, count)
        rows_of = {
            queue: self._next(sources[queue], picks.count(queue), effective, start=start)
            for queue in dict.fromkeys(picks)
        }
        taken = 0
        for queue in picks:
            if rows_of[queue]:
                self._hold(rows_of[queue].pop(0), effective, start=start)
                taken += 1
        rotation.save()
        return taken

    def _next(
        self,
        sources: Sequence[tuple[int, int]],
        count: int,
        effective: int,
        *,
        start: bool,
        known: list[Any] | None = None,
    ) -> list[_Met]:
        """The next messages of one queue at one level, out of ready and past every check.

        `known` are the first rows, where they are known already.
        """
        found: list[_Met] = []
        limit = count
        while len(found) < count and not self._spent():
            rows = self._rows(sources, limit, effective) if known is None else known
            known = None
            if not rows:
                break
            for row in rows:
                if len(found) == count or self._spent():
                    break
                if self._is_open(row[1]) and (passed := self._check(row, start=start)):
                    found.append(passed)
            limit = count - len(found) + _MORE_ROWS
        return found

    def _rows(self, sources: Sequence[tuple[int, int]], limit: int, effective: int) -> list[Any]:
        """The first rows of these lanes together, in order; no lane is seen less far than another."""
        if len(sources) == 1:
            return self._lane_rows(*sources[0], limit, effective)
        rows: list[Any] = []
        seen_to: list[tuple[int, int]] = []
        for lane, npri in sources:
            fetched = self._lane_rows(lane, npri, limit, effective)
            rows += fetched
            if len(fetched) == limit:
                seen_to.append(_place_key(fetched[-1]))
        rows.sort(key=_place_key)
        if not seen_to:
            return rows
        # What a lane has behind the last row read of it may come before the rows of the others.
        horizon = min(seen_to)
        return [row for row in rows if _place_key(row) <= horizon]

    def _lane_rows(self, lane: int, npri: int, limit: int, effective: int) -> list[Any]:
        if not self._is_open(lane):
            return []
        rows = self._tx.execute(_FETCH, (lane, npri, limit)).fetchall()
        if self._request.aging is None:
            return rows
        # Under aging only the first of a band may have waited long enough for its level.
        return list(takewhile(lambda row: self._on_level(row, effective), rows))

    def _is_open(self, lane: int) -> bool:
        return not self._rates.changed or self._rates.open(self._tx.lane(lane))

    def _on_level(self, row: Any, effective: int) -> bool:
        aging = self._request.aging
        assert aging is not None
        return aging.effective(-row[2], row[3] / 1_000_000, self._tx.time) == effective

    def _check(self, row: Any, *, start: bool) -> _Met | None:
        """Take a row out of ready; None when it ended, died or was set aside instead."""
        tx = self._tx
        place = Place._make(row[:_PLACE_WIDTH])
        tx.execute(DELETE_READY, (place.lane, place.npri, place.visible_at, place.seq))
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
        lane = tx.lane(place.lane)
        if place.expires_at is not None and place.expires_at <= tx.now:
            self._end(place, message, endings.expired(message, **tx.ending()))
        elif tx.any_revoked and (reason := tx.revocation(message.task_id)) is not None:
            self._end(place, message, endings.revoked(message, reason, **tx.ending()))
        elif place.deliveries >= message.max_deliveries:
            how = endings.dead(message, place.deliveries, **tx.ending())
            self._end(place, message, how, reason=endings.CRASH_LOOP)
        elif lane.rate_key is None or self._has_token(place, message, lane, start=start):
            return _Met(place, message)
        return None

    def _end(self, place: Place, message: Message, how: endings.Ended, *, reason: str = "") -> None:
        self._ended += 1
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
        self._ended += 1
        log.exception(
            "message %d cannot be read and is put off; the others go on",
            place.seq,
            extra={"action": "bad-row"},
        )

    def _hold(self, met: _Met, effective: int, *, start: bool) -> None:
        tx = self._tx
        place = met.place
        # From the system, not the injected generator: a forked copy of that would repeat tokens.
        token = int.from_bytes(os.urandom(8), "big") >> 2
        self._held.append(
            (
                place.seq,
                token,
                self._request.worker,
                tx.now,
                self._lease_until,
                self._lease,
                tx.now if start else None,
                place.lane,
                place.npri,
                place.visible_at,
                place.deliveries + 1,
                place.yields,
                place.yieldable,
                place.expires_at,
                place.keyed,
            )
        )
        self.deliveries.append(
            Delivery(
                message=met.message,
                token=token,
                seq=place.seq,
                visible_at=place.visible_at / 1_000_000,
                lease_until=self._lease_until / 1_000_000,
                deliveries=place.deliveries + 1,
                yields=place.yields,
                yieldable=bool(place.yieldable),
                effective=effective,
                started=start,
            )
        )


def _place_key(row: Any) -> tuple[int, int]:
    """`(visible_at, seq)`: the order inside one level."""
    return row[3], row[0]


def nothing_to_take(tx: Tx, request: ReserveRequest) -> bool:
    """Whether a reserve would find and change nothing; reads only, so that idling takes no lock."""
    window = request.budget.window()
    if request.slots > 0 and window is not None:
        if any(window.admits(delivery.effective) for delivery in request.waiting):
            return False
    elif request.room <= 0:
        return True
    tx.refresh()
    if tx.any_scheduled and any_due(tx):
        return False
    if window is None:
        return True
    lanes = open_lanes(tx, request.queues)
    return top_level(tx, lanes, window, request.aging) is None
