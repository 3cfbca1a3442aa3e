"""Completions on their way from the threads that run tasks to the coordinator."""

from __future__ import annotations

from collections import deque

from taskmq.bell import Bell
from taskmq.pools.base import Completion


class Outbox:
    """A queue with a descriptor that is readable when there is something to take. Thread-safe."""

    def __init__(self) -> None:
        self._items: deque[Completion] = deque()
        self._signalled = False
        self._closed = False
        self._bell = Bell()

    @property
    def fd(self) -> int:
        """Readable when there is something to take."""
        return self._bell.fd

    def put(self, completion: Completion) -> None:
        """Add one and wake the coordinator."""
        self._items.append(completion)
        self.wake()

    def put_silently(self, completion: Completion) -> None:
        """Add one for whoever takes next; `fd` says nothing of it."""
        self._items.append(completion)

    def wake(self) -> None:
        """Make the descriptor readable; one byte is enough however many items follow."""
        # `take` clears the mark before it empties the queue, so an item that finds the mark set is
        # taken with the ones that set it.
        if not self._signalled and not self._closed:
            self._signalled = True
            self._bell.ring()

    def take(self) -> list[Completion]:
        """Everything that has come."""
        if not self._closed:
            # Whatever the mark says: a ring may come after its item was taken, and would be heard for ever.
            self._bell.drain()
            self._signalled = False
        items = self._items
        taken = []
        while items:
            taken.append(items.popleft())
        return taken

    def close(self) -> None:
        """Close both ends; items put later are dropped."""
        self._closed = True
        self._bell.close()
