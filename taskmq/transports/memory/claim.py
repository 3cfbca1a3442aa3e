"""Which message next: heads from the lanes, the choice from policy (G1, P2, P3, P8, P10, P16, P17)."""

from __future__ import annotations

from collections.abc import Sequence

from taskmq.message import Delivery
from taskmq.policy.aging import Aging
from taskmq.policy.bands import Head, Window, local_first, top_band
from taskmq.policy.rotation import Share, rotate
from taskmq.transports.base import QueueShare, ReserveRequest
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.starting import start_held
from taskmq.transports.memory.store import Store


def heads(
    store: Store,
    queues: Sequence[QueueShare],
    aging: Aging | None,
    now: float,
    *,
    peeking: bool = False,
) -> list[Head]:
    """The first message of every open lane and band. A reserve also meets those without a token."""
    found: list[Head] = []
    for share in queues:
        if store.paused.get(share.name):
            continue
        for lane in store.waiting.lanes(share.name):
            rates = store.waiting.rates
            if rates.has_token(lane, now) if peeking else rates.open(lane, now):
                found.extend(lane.heads(now, aging, yieldable=peeking))
    return found


def peek(
    store: Store, queues: Sequence[QueueShare], window: Window, aging: Aging | None, now: float
) -> int | None:
    """The highest effective priority a reserve would find and that may make somebody yield."""
    band = top_band(heads(store, queues, aging, now, peeking=True), window)
    return band[0].effective if band else None


class Claim:
    """One reserve: fills the free slots, then the room for unstarted deliveries."""

    def __init__(self, store: Store, request: ReserveRequest, now: float) -> None:
        self._store = store
        self._request = request
        self._now = now
        self._budget = request.budget
        self.deliveries: list[Delivery] = []
        self.refused: list[Delivery] = []

    def run(self) -> None:
        """Carry it out; the result is in `deliveries` and `refused`."""
        self._fill_slots()
        window = self._budget.window()
        room = self._request.room
        # Held unstarted only what a slot could take next; it takes no token before it starts (P18).
        while room > 0 and window is not None:
            band = self._band(window)
            if not band:
                break
            room -= self._take_band(band, room, start=False)

    def _fill_slots(self) -> None:
        waiting = sorted(self._request.waiting, key=lambda d: d.sort_key)
        slots = self._request.slots
        while slots > 0:
            window = self._budget.window()
            if window is None:
                return
            band = self._band(window)
            stored = band[0].effective if band else None
            local = next((d for d in waiting if window.admits(d.effective)), None)
            if local is not None and local_first(local.effective, stored):
                waiting.remove(local)
                started = start_held(self._store, local, self._now)
                if started is None:
                    self.refused.append(local)
                    continue
                self.deliveries.append(started)
                self._budget = self._budget.take(local.effective)
                slots -= 1
            elif stored is not None:
                fitting = self._budget.room(stored)
                count = slots if fitting is None else min(slots, fitting)
                taken = self._take_band(band, count, start=True)
                for _ in range(taken):
                    self._budget = self._budget.take(stored)
                slots -= taken
            else:
                return

    def _band(self, window: Window) -> list[Head]:
        found = heads(self._store, self._request.queues, self._request.aging, self._now)
        return top_band(found, window)

    def _take_band(self, band: list[Head], count: int, *, start: bool) -> int:
        """Take up to `count` of this band, its queues in rotation; how many there were."""
        store = self._store
        top = band[0].effective
        present = {head.queue for head in band}
        shares = [
            Share(q.name, q.weight, store.counters.get(q.name, 0))
            for q in self._request.queues
            if q.name in present
        ]
        picks, counters = rotate(shares, count)
        if len(shares) > 1:
            store.counters.update(counters)
        taken = 0
        for queue in picks:
            entry = self._next(queue, top, start=start)
            if entry is not None:
                self._take(entry, top, start=start)
                taken += 1
        return taken

    def _next(self, queue: str, top: int, *, start: bool) -> Entry | None:
        """The next of a queue at this level that no limit sets aside."""
        share = QueueShare(queue)
        store = self._store
        while True:
            found = heads(store, (share,), self._request.aging, self._now)
            level = [h for h in found if h.effective == top]
            if not level:
                return None
            head = min(level, key=lambda h: h.sort_key)
            entry = store.entries[head.seq]
            rate = entry.message.rate
            if rate is None:
                return entry
            rates = store.waiting.rates
            if not start and (
                entry.booked or rates.state(rate.key, self._now).has_token(self._now)
            ):
                return entry
            # A booked one stands in an open lane, so it starts, and that closes its lane.
            at = rates.take(entry, self._now)
            if at <= self._now:
                return entry
            set_aside(store, entry, at, self._now)

    def _take(self, entry: Entry, effective: int, *, start: bool) -> None:
        store = self._store
        store.waiting.remove(entry)
        entry.place = Place.RUNNING if start else Place.RESERVED
        entry.token = store.random.getrandbits(56)
        entry.worker = self._request.worker
        entry.lease = self._request.lease
        entry.lease_until = self._now + entry.lease
        entry.deliveries += 1
        entry.effective = effective
        self.deliveries.append(entry.delivery())


def set_aside(store: Store, entry: Entry, at: float, now: float) -> None:
    """Until its booked token time; from then on it starts as soon as the pace allows (P8)."""
    store.waiting.remove(entry)
    entry.booked = True
    entry.due_at = at
    store.put_back(entry, now)
