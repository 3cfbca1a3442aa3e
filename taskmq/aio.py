"""A priority queue for one event loop, with stable order and TaskMQ's own sense of urgency.

`asyncio.PriorityQueue` serves the smallest first and compares payloads when priorities are equal. Here
larger is more urgent, as everywhere in TaskMQ, equal priorities leave in the order of their `put`, and
payloads are never compared.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Generic, TypeVar

from taskmq.errors import ConfigError
from taskmq.policy.stable_heap import StableHeap
from taskmq.priority import check_priority

T = TypeVar("T")


class StablePriorityQueue(Generic[T]):
    """`put(priority, payload)`, `get() -> (priority, sequence, payload)`.

    `priority` is an int in -9..9, larger = more urgent; anything else raises `PriorityError` at the `put`.
    `sequence` counts the puts of this queue, and holds only within it: order that must survive the process
    or span several is a transport's. `maxsize` above 0 bounds the whole queue, not one priority: `put` waits
    while it is full, and those that wait keep the place of their call. A cancelled `get` or `put` loses
    nothing and adds nothing. For one event loop; not thread-safe.

        priority, sequence, payload = await queue.get()
        try:
            ...
        finally:
            queue.task_done()  # in finally, or join() waits for ever
    """

    def __init__(self, maxsize: int = 0) -> None:
        if isinstance(maxsize, bool) or not isinstance(maxsize, int) or maxsize < 0:
            raise ConfigError(
                f"StablePriorityQueue(maxsize): an int from 0 (0 = no bound), got {maxsize!r}"
            )
        self._queue: _HeapQueue[T] = _HeapQueue(maxsize)
        self._sequence = itertools.count()

    @property
    def maxsize(self) -> int:
        """How many items fit; 0 is no bound."""
        return self._queue.maxsize

    async def put(self, priority: int, payload: T) -> int:
        """Add a payload, waiting while the queue is full; returns its sequence."""
        item = self._item(priority, payload)
        await self._queue.put(item)
        return item[1]

    def put_nowait(self, priority: int, payload: T) -> int:
        """Add a payload at once; `asyncio.QueueFull` when there is no room."""
        priority = check_priority(priority, "StablePriorityQueue.put")
        if self._queue.full():
            raise asyncio.QueueFull
        item = self._item(priority, payload)
        self._queue.put_nowait(item)
        return item[1]

    async def get(self) -> tuple[int, int, T]:
        """Take the most urgent item, waiting while there is none."""
        return await self._queue.get()

    def get_nowait(self) -> tuple[int, int, T]:
        """Take the most urgent item at once; `asyncio.QueueEmpty` when there is none."""
        return self._queue.get_nowait()

    def task_done(self) -> None:
        """Say that the work on one item that was got is over; `ValueError` when called too often."""
        self._queue.task_done()

    async def join(self) -> None:
        """Wait until every item that was put has been got and its `task_done` called."""
        await self._queue.join()

    def qsize(self) -> int:
        """How many items wait."""
        return self._queue.qsize()

    def empty(self) -> bool:
        """Whether no item waits."""
        return self._queue.empty()

    def full(self) -> bool:
        """Whether a `put` would wait now."""
        return self._queue.full()

    def __repr__(self) -> str:
        return f"<StablePriorityQueue size={self.qsize()} maxsize={self.maxsize}>"

    def _item(self, priority: int, payload: T) -> tuple[int, int, T]:
        # The sequence is given by the call and not by the moment there is room: a put that had to wait
        # stays before one that came later.
        return check_priority(priority, "StablePriorityQueue.put"), next(self._sequence), payload


class _HeapQueue(asyncio.Queue[tuple[int, int, T]]):
    """asyncio's waiting, counting and cancellation, over our heap."""

    _queue: StableHeap[T]

    def _init(self, maxsize: int) -> None:
        self._queue = StableHeap()

    def _put(self, item: tuple[int, int, T]) -> None:
        priority, sequence, payload = item
        self._queue.push(priority, payload, sequence=sequence)

    def _get(self) -> tuple[int, int, T]:
        priority, sequence, payload = self._queue.pop()
        return int(priority), sequence, payload
