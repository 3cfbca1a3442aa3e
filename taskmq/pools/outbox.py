"""Completions on their way from the threads that run tasks to the coordinator."""

from __future__ import annotations

import socket
from collections import deque

from taskmq.pools.base import Completion


class Outbox:
    """A queue with a descriptor that is readable when there is something to take. Thread-safe."""

    def __init__(self) -> None:
        self._items: deque[Completion] = deque()
        self._signalled = False
        self._closed = False
        # Sockets and not a pipe: Windows can wait for nothing else.
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)

    @property
    def fd(self) -> int:
        """Readable when there is something to take."""
        return self._read.fileno()

    def put(self, completion: Completion) -> None:
        """Add one and wake the coordinator."""
        self._items.append(completion)
        self.wake()

    def wake(self) -> None:
        """Make the descriptor readable; one byte is enough however many items follow."""
        # `take` clears the mark before it empties the queue, so an item that finds the mark set is
        # taken with the ones that set it.
        if not self._signalled and not self._closed:
            self._signalled = True
            try:
                self._write.send(b"\0")
            except OSError:
                pass  # full is as good as readable, and closed means nobody waits

    def take(self) -> list[Completion]:
        """Everything that has come."""
        if self._signalled and not self._closed:
            try:
                self._read.recv(64)
            except BlockingIOError:
                pass  # the writer has set the mark and writes in a moment
            self._signalled = False
        items = self._items
        taken = []
        while items:
            taken.append(items.popleft())
        return taken

    def close(self) -> None:
        """Close both ends; items put later are dropped."""
        if not self._closed:
            self._closed = True
            self._read.close()
            self._write.close()
