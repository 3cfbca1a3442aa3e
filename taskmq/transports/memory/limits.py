"""Rate tokens and concurrency keys of the memory transport: the stored half of `policy.limits`."""

from __future__ import annotations

from taskmq.message import ConcurrencyKey, Rate
from taskmq.policy.limits import (
    BOOKINGS_PER_TURN,
    RATE_KEPT,
    Holder,
    RateState,
    admit,
    adopt_interval,
    as_of,
    close_lane,
    emptied,
    start_booked,
    take_token,
)
from taskmq.policy.stable_heap import StableHeap
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.lanes import Lane


class Rates:
    """When the next token of each rate limit falls due."""

    def __init__(self) -> None:
        self._states: dict[str, RateState] = {}
        # Bookings of the turn under way, by rate key.
        self._booked: dict[str, int] = {}
        # The queues that messages of a key were in.
        self._queues: dict[str, set[str]] = {}

    def begin_turn(self) -> None:
        """Count bookings anew."""
        self._booked.clear()

    def state(self, key: str, now: float) -> RateState:
        """The state of a key; open with a token when nothing is known of it."""
        return as_of(self._states.get(key, RateState()), now)

    def open(self, lane: Lane, now: float) -> bool:
        """Whether a reserve looks at this lane now."""
        if lane.rate is None:
            return True
        state = self.state(lane.rate, now)
        return state.may_start(now) if lane.booked else not state.closed(now)

    def has_token(self, lane: Lane, now: float) -> bool:
        """Whether a message of this lane may start now."""
        if lane.rate is None:
            return True
        state = self.state(lane.rate, now)
        return state.may_start(now) if lane.booked else state.has_token(now)

    def opens_at(self, lane: Lane, now: float) -> float:
        """When a message of this lane may start next."""
        if lane.rate is None:
            return now
        state = self.state(lane.rate, now)
        return state.gate if lane.booked else max(state.next_at, state.closed_until, state.gate)

    def adopt(self, rate: Rate, queue: str, now: float) -> None:
        """Go by the interval of a message that is submitted."""
        self._states[rate.key] = adopt_interval(self.state(rate.key, now), rate.interval, now)
        self._queues.setdefault(rate.key, set()).add(queue)

    def emptied(self, queue: str) -> None:
        """Forget the bookings of keys that were in no other queue: nothing waits for them any more."""
        for key, queues in self._queues.items():
            if queues == {queue} and key in self._states:
                self._states[key] = emptied(self._states[key])

    def take(self, entry: Entry, now: float) -> float:
        """The time this message may start: `now` when it took a token, later when it may not yet.

        For one without a booking that is the time it has booked then.
        """
        rate = entry.message.rate
        if rate is None:
            return now
        state = self.state(rate.key, now)
        if entry.booked:
            if not state.may_start(now):
                return state.gate
            self._states[rate.key] = start_booked(state, now)
            return now
        at, after = take_token(state, rate.interval, now)
        if at > now:
            booked = self._booked[rate.key] = self._booked.get(rate.key, 0) + 1
            if booked >= BOOKINGS_PER_TURN:
                after = close_lane(after, at)
        self._states[rate.key] = after
        return at

    def forget_old(self, now: float) -> None:
        """Drop states that say no more than none would."""
        self._states = {
            key: state
            for key, state in self._states.items()
            if not state.forgettable(now, RATE_KEPT)
        }


class Keys:
    """Who holds each concurrency key, and who is blocked by it."""

    def __init__(self) -> None:
        self._holders: dict[str, dict[int, Entry]] = {}
        self._blocked: dict[str, StableHeap[Entry]] = {}

    def holders(self, key: str) -> list[Entry]:
        """Those that count against the key."""
        return list(self._holders.get(key, {}).values())

    def admit(self, entry: Entry, key: ConcurrencyKey) -> tuple[bool, Entry | None]:
        """Let a due message take its key: whether it did, and the holder it swaps out, if any."""
        holding = self._holders.setdefault(key.key, {})
        states = [Holder(e.seq, e.sort_key, not e.place.held) for e in holding.values()]
        admitted, out = admit(entry.sort_key, states, key.limit)
        swapped = None
        if out is not None:
            swapped = holding.pop(out)
            swapped.has_key = False
        if admitted:
            holding[entry.seq] = entry
            entry.has_key = True
        elif not holding:
            del self._holders[key.key]
        return admitted, swapped

    def block(self, entry: Entry, key: ConcurrencyKey) -> None:
        """Wait for the key, in sort order."""
        entry.place = Place.BLOCKED
        self._blocked.setdefault(key.key, StableHeap()).push(
            entry.message.priority,
            entry,
            key=entry.seq,
            at=entry.visible_at,
            sequence=entry.seq,
        )

    def unblock(self, entry: Entry, key: ConcurrencyKey) -> None:
        """Stop waiting for the key."""
        waiting = self._blocked[key.key]
        waiting.remove(entry.seq)
        if not waiting:
            del self._blocked[key.key]

    def release(self, entry: Entry, key: ConcurrencyKey) -> list[Entry]:
        """Give the key up; the blocked ones that hold it instead, already admitted."""
        holding = self._holders[key.key]
        del holding[entry.seq]
        entry.has_key = False
        successors = []
        while (waiting := self._blocked.get(key.key)) and (first := waiting.peek()):
            heir = first[2]
            limit = heir.message.concurrency
            if limit is None or len(holding) >= limit.limit:
                break
            self.unblock(heir, key)
            holding[heir.seq] = heir
            heir.has_key = True
            successors.append(heir)
        if not holding:
            del self._holders[key.key]
        return successors
