"""Rate tokens and concurrency keys of the memory transport: the stored half of `policy.limits`."""

from __future__ import annotations

from taskmq.message import ConcurrencyKey
from taskmq.policy.limits import (
    BOOKINGS_PER_TURN,
    Holder,
    RateState,
    admit,
    close_lane,
    take_token,
)
from taskmq.policy.stable_heap import StableHeap
from taskmq.transports.memory.entries import Entry, Place


class Rates:
    """When the next token of each rate limit falls due."""

    def __init__(self) -> None:
        self._states: dict[str, RateState] = {}
        # Bookings of the turn under way, by rate key.
        self._booked: dict[str, int] = {}

    def begin_turn(self) -> None:
        """Count bookings anew."""
        self._booked.clear()

    def state(self, key: str) -> RateState:
        """Of a key nobody has used yet: a token at once."""
        return self._states.get(key, RateState())

    def take(self, entry: Entry, now: float) -> float:
        """The time this message may start: `now` when it took a token, later when it booked one."""
        rate = entry.message.rate
        if rate is None or entry.booked:
            return now
        at, after = take_token(self.state(rate.key), rate.interval, now)
        if at > now:
            booked = self._booked[rate.key] = self._booked.get(rate.key, 0) + 1
            if booked >= BOOKINGS_PER_TURN:
                after = close_lane(after, at)
        self._states[rate.key] = after
        return at

    def forget_old(self, now: float) -> None:
        """Drop states that say no more than none would."""
        self._states = {k: s for k, s in self._states.items() if not s.has_token(now)}


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
