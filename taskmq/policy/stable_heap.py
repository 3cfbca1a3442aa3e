"""A priority heap with stable order: larger priority first, then first in first out. Pure.

Entries are `(-priority, sequence, payload)`; the sequence is unique, so payloads are never compared.
Carries the memory transport, the coordinator's unstarted deliveries and `taskmq.aio`.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class StableHeap(Generic[T]):
    """Push with a priority, pop the most urgent, remove by key in O(log n) amortised.

    Not thread-safe: whoever shares one holds a lock.
    """

    __slots__ = ("_counter", "_entries", "_live", "_pushes")

    def __init__(self) -> None:
        self._entries: list[tuple[float, float, int, int, Hashable, T]] = []
        # key -> number of the push that is live; a heap entry of another push was removed. Not the
        # sequence: whoever takes a message out and puts it back keeps its sequence.
        self._live: dict[Hashable, int] = {}
        self._counter = itertools.count()
        self._pushes = itertools.count()

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._live

    def push(
        self,
        priority: float,
        payload: T,
        *,
        key: Hashable = None,
        at: float = 0.0,
        sequence: int | None = None,
    ) -> int:
        """Add a payload and return its sequence. `at` orders before the sequence inside one priority.

        A caller that has an enqueue sequence of its own gives it; it must be unique among what is in the
        heap. Without a key the sequence is the key. Raises `ValueError` when `key` is in it already.
        """
        if sequence is None:
            sequence = next(self._counter)
        if key is None:
            key = sequence
        if key in self._live:
            raise ValueError(f"key {key!r} is in the heap already")
        push = self._live[key] = next(self._pushes)
        heapq.heappush(self._entries, (-priority, at, sequence, push, key, payload))
        return sequence

    def peek(self) -> tuple[float, int, T] | None:
        """`(priority, sequence, payload)` of the most urgent entry, which stays."""
        self._drop_removed()
        if not self._entries:
            return None
        negative, _, sequence, _, _, payload = self._entries[0]
        return -negative, sequence, payload

    def pop(self) -> tuple[float, int, T]:
        """Take the most urgent entry as `(priority, sequence, payload)`; `IndexError` when empty."""
        self._drop_removed()
        negative, _, sequence, _, key, payload = heapq.heappop(self._entries)
        del self._live[key]
        return -negative, sequence, payload

    def remove(self, key: Hashable) -> bool:
        """Remove the entry of this key; False when it is not there."""
        if self._live.pop(key, None) is None:
            return False
        # Removed entries are left to sink; rebuilt when they outnumber the live ones.
        if len(self._entries) > 64 and len(self._entries) > 2 * len(self._live):
            self._entries = [e for e in self._entries if self._live.get(e[4]) == e[3]]
            heapq.heapify(self._entries)
        return True

    def ordered(self) -> Iterator[tuple[float, int, T]]:
        """The live entries in the order they would be popped; the heap stays as it is."""
        for negative, _, sequence, push, key, payload in sorted(self._entries, key=lambda e: e[:3]):
            if self._live.get(key) == push:
                yield -negative, sequence, payload

    def _drop_removed(self) -> None:
        entries = self._entries
        while entries and self._live.get(entries[0][4]) != entries[0][3]:
            heapq.heappop(entries)
