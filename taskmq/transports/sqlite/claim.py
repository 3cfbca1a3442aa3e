"""One reserve: which message next is policy's word, fetching is done here (G1, P2, P3, P8); see `taking`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from taskmq.message import Delivery
from taskmq.policy.bands import Window, local_first
from taskmq.transports.base import ReserveRequest
from taskmq.transports.sqlite.catalog import NO_LANES
from taskmq.transports.sqlite.due import any_due, promote
from taskmq.transports.sqlite.heads import Level, open_lanes, top_level
from taskmq.transports.sqlite.leases import start_one
from taskmq.transports.sqlite.rates import Rates
from taskmq.transports.sqlite.rotation import Rotation
from taskmq.transports.sqlite.rows import Place
from taskmq.transports.sqlite.taking import ROW_COLUMNS, Taken, Taking
from taskmq.transports.sqlite.tx import Tx

# Messages ended in one transaction because they expired at a head: some 10 ms. The next turn goes on.
ENDED_PER_TURN = 256
# Once a head was found expired, many behind it are likely to be.
_MORE_ROWS = 32
# Of a row: whether its message has a concurrency key.
_KEYED = Place._fields.index("keyed")

_FETCH = (
    f"SELECT {ROW_COLUMNS} FROM ready r CROSS JOIN message m ON m.seq = r.seq "  # noqa: S608
    "WHERE r.lane = ? AND r.npri = ? ORDER BY r.visible_at, r.seq LIMIT ?"
)
# The same of the highest band of a lane: one statement instead of two, for a worker of one queue.
_FETCH_TOP = _FETCH.replace(
    "r.npri = ?",
    "r.npri = (SELECT npri FROM ready WHERE lane = ? AND npri BETWEEN ? AND ? ORDER BY npri LIMIT 1)",
)


class Claim:
    """Fills the free slots, then the room for unstarted deliveries, of one request."""

    def __init__(self, tx: Tx, request: ReserveRequest) -> None:
        self._tx = tx
        self._request = request
        self._budget = request.budget
        self._lanes = NO_LANES
        self._rates = Rates(tx)
        self._taking = Taking(tx, request, self._rates)
        self.refused: list[Delivery] = []

    @property
    def deliveries(self) -> list[Delivery]:
        """What is held now: new ones, and those of `waiting` that started."""
        return self._taking.deliveries

    def run(self) -> None:
        """Carry it out; the result is in `deliveries` and `refused`."""
        self._tx.refresh()
        if self._tx.any_scheduled:
            promote(self._tx)
        self._lanes = open_lanes(self._tx, self._request.queues)
        self._fill_slots()
        self._fill_room()
        self._taking.save()
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
        self._taking.deliveries.append(started)
        self._budget = self._budget.take(local.effective)
        return 1

    def _spent(self) -> bool:
        if self._taking.ended < ENDED_PER_TURN:
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
        keep = self._taking.keep
        if len(sources) == 1:
            (only,) = sources.values()
            taken = self._next(only, count, effective, start=start, known=known)
            for one in taken:
                keep(one)
            return len(taken)
        rotation = Rotation(self._tx)
        picks = rotation.pick(self._request.queues, sources, count)
        of_queue = {
            queue: self._next(sources[queue], picks.count(queue), effective, start=start)
            for queue in dict.fromkeys(picks)
        }
        held = 0
        for queue in picks:
            if of_queue[queue]:
                keep(of_queue[queue].pop(0))
                held += 1
        rotation.save()
        return held

    def _next(
        self,
        sources: Sequence[tuple[int, int]],
        count: int,
        effective: int,
        *,
        start: bool,
        known: list[Any] | None = None,
    ) -> list[Taken]:
        """The next messages of one queue at one level, out of ready and past every check.

        `known` are the first rows, where they are known already.
        """
        found: list[Taken] = []
        take = self._taking.take
        limit = count
        while len(found) < count and not self._spent():
            rows = self._rows(sources, limit, effective) if known is None else known
            known = None
            if not rows:
                break
            for row in rows:
                if len(found) == count or self._spent():
                    break
                if not self._is_open(row[1]):
                    continue
                taken = take(row, effective, start=start)
                if taken is not None:
                    found.append(taken)
                elif row[_KEYED]:
                    # Its key went to another, which may come before the rows read already.
                    return found
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
