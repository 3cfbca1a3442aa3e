"""Where unreserved messages wait: in a lane, until their "not before", or for their concurrency key.

Knows nothing of results, revocations or endings; who adds a message has decided that it may run.
"""

from __future__ import annotations

from collections.abc import Iterable

from taskmq.policy.stable_heap import StableHeap
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.lanes import Lane
from taskmq.transports.memory.limits import Keys, Rates


class Waiting:
    """All lanes, schedules and keys of a store. `news` is set when a message became claimable."""

    def __init__(self) -> None:
        self.rates = Rates()
        self.keys = Keys()
        self.news = False
        self._lanes: dict[str, dict[tuple[str | None, bool], Lane]] = {}
        self._due: dict[str, StableHeap[Entry]] = {}
        self._expiring: StableHeap[Entry] = StableHeap()

    def lanes(self, queue: str) -> Iterable[Lane]:
        """The plain lane of a queue and those of its rate limits."""
        return self._lanes.get(queue, {}).values()

    def next_due(self, queues: Iterable[str], now: float) -> float | None:
        """The earliest "not before" to come, or the time of a lane's next token, in these queues."""
        times = []
        for queue in queues:
            scheduled = self._due.get(queue)
            first = scheduled.peek() if scheduled is not None else None
            if first is not None and first[2].due_at is not None:
                times.append(first[2].due_at)
            for lane in self.lanes(queue):
                if lane.rate is not None and lane:
                    times.append(self.rates.opens_at(lane, now))
        return min((t for t in times if t > now), default=None)

    # -- in and out -------------------------------------------------------------------------------

    def add(self, entry: Entry, now: float) -> None:
        """Let a message wait where its times and its key say."""
        expires_at = entry.message.expires_at
        if expires_at is not None:
            self._expiring.push(0, entry, key=entry.seq, at=expires_at, sequence=entry.seq)
        self._arrive(entry, now)

    def remove(self, entry: Entry) -> None:
        """Out of whatever it waits in; its key stays its own."""
        key = entry.message.concurrency
        if entry.place is Place.READY:
            self._lane_of(entry).remove(entry)
        elif entry.place is Place.SCHEDULED:
            self._unschedule(entry)
        elif entry.place is Place.BLOCKED and key is not None:
            self.keys.unblock(entry, key)
        if not entry.place.held:
            self._expiring.remove(entry.seq)

    def free_key(self, entry: Entry, now: float) -> None:
        """Give up the concurrency key, so that the next blocked ones have it."""
        key = entry.message.concurrency
        if key is not None and entry.has_key:
            for heir in self.keys.release(entry, key):
                self._admitted(heir, now)

    # -- time -------------------------------------------------------------------------------------

    def next_expired(self, now: float) -> Entry | None:
        """One message whose expiry has passed; whoever asks removes it."""
        found = self._expiring.peek()
        if found is None:
            return None
        expires_at = found[2].message.expires_at
        return found[2] if expires_at is not None and expires_at <= now else None

    def promote(self, now: float) -> None:
        """Make claimable what is due."""
        for scheduled in list(self._due.values()):
            while (found := scheduled.peek()) is not None:
                entry = found[2]
                if entry.due_at is not None and entry.due_at > now:
                    break
                scheduled.pop()
                self._arrive(entry, now)

    # -- the moves themselves ---------------------------------------------------------------------

    def _arrive(self, entry: Entry, now: float) -> None:
        if entry.due_at is not None and entry.due_at > now:
            self._schedule(entry, entry.due_at)
            return
        entry.due_at = None
        key = entry.message.concurrency
        if key is None or entry.has_key:
            self._admitted(entry, now)
            return
        admitted, swapped = self.keys.admit(entry, key)
        if swapped is not None:
            self._swap_out(swapped, now)
        if admitted:
            self._admitted(entry, now)
        else:
            self.keys.block(entry, key)

    def _admitted(self, entry: Entry, now: float) -> None:
        """Claimable, or set aside with the key in hand (after a yield, or with a booked token)."""
        if entry.due_at is not None and entry.due_at > now:
            self._schedule(entry, entry.due_at)
            return
        entry.due_at = None
        entry.place = Place.READY
        self._lane_of(entry).add(entry)
        self.news = True

    def _swap_out(self, entry: Entry, now: float) -> None:
        if entry.place is Place.READY:
            self._lane_of(entry).remove(entry)
        else:
            self._unschedule(entry)
            if entry.due_at is not None and entry.due_at <= now:
                entry.due_at = None
        key = entry.message.concurrency
        assert key is not None
        self.keys.block(entry, key)

    def _schedule(self, entry: Entry, due_at: float) -> None:
        entry.place = Place.SCHEDULED
        scheduled = self._due.setdefault(entry.message.queue, StableHeap())
        scheduled.push(0, entry, key=entry.seq, at=due_at, sequence=entry.seq)

    def _unschedule(self, entry: Entry) -> None:
        scheduled = self._due.get(entry.message.queue)
        if scheduled is not None:
            scheduled.remove(entry.seq)

    def _lane_of(self, entry: Entry) -> Lane:
        lanes = self._lanes.setdefault(entry.message.queue, {})
        kind = (entry.rate_key, entry.booked)
        lane = lanes.get(kind)
        if lane is None:
            lane = Lane(entry.message.queue, entry.rate_key, len(lanes), booked=entry.booked)
            lanes[kind] = lane
        return lane
