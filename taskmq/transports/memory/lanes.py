"""Lanes: what has one head. A queue has a plain lane, and per rate limit among its messages one for those
that booked a token and one for those that did not.

Each band of a lane is a `StableHeap`; so leaving a lane out of the heads costs nothing however long
its backlog is.
"""

from __future__ import annotations

from collections.abc import Iterator

from taskmq.policy.aging import Aging
from taskmq.policy.bands import Head
from taskmq.policy.stable_heap import StableHeap
from taskmq.transports.memory.entries import Entry


class Lane:
    """The claimable messages of one queue, or of one rate limit in it, booked or not, by band."""

    __slots__ = ("_bands", "_set", "booked", "number", "queue", "rate")

    def __init__(self, queue: str, rate: str | None, number: int, *, booked: bool = False) -> None:
        self.queue = queue
        self.rate = rate
        self.booked = booked
        self.number = number
        self._bands: dict[int, StableHeap[Entry]] = {}
        # How many of each band are no longer yieldable: peek leaves those out.
        self._set: dict[int, int] = {}

    def add(self, entry: Entry) -> None:
        """Let it wait here, in its band."""
        band = entry.message.priority
        heap = self._bands.get(band)
        if heap is None:
            heap = self._bands[band] = StableHeap()
        heap.push(band, entry, key=entry.seq, at=entry.visible_at, sequence=entry.seq)
        if not entry.yieldable:
            self._set[band] = self._set.get(band, 0) + 1

    def remove(self, entry: Entry) -> None:
        """It waits here no more; `KeyError` when it did not."""
        band = entry.message.priority
        self._bands[band].remove(entry.seq)
        if not entry.yieldable:
            self._set[band] -= 1

    def __bool__(self) -> bool:
        return any(map(len, self._bands.values()))

    def entries(self) -> Iterator[Entry]:
        """In claim order."""
        for band in sorted(self._bands, reverse=True):
            for _, _, entry in self._bands[band].ordered():
                yield entry

    def first(self, band: int) -> Entry | None:
        """The head of a band."""
        found = self._bands[band].peek() if band in self._bands else None
        return found[2] if found else None

    def heads(self, now: float, aging: Aging | None, *, yieldable: bool) -> Iterator[Head]:
        """The first message of each band that has one, with its effective priority.

        With `yieldable` the first that may still be yielded: the others make nobody yield (P14).
        """
        for band in self._bands:
            entry = self._first_yieldable(band) if yieldable else self.first(band)
            if entry is None:
                continue
            effective = aging.effective(band, entry.visible_at, now) if aging else band
            yield Head(self.queue, self.number, effective, entry.visible_at, entry.seq)

    def _first_yieldable(self, band: int) -> Entry | None:
        entry = self.first(band)
        if entry is None or entry.yieldable:
            return entry
        heap = self._bands[band]
        if len(heap) == self._set[band]:
            return None
        return next(e for _, _, e in heap.ordered() if e.yieldable)
