"""Waking waiting threads: each has a socket pair of its own that one byte makes readable."""

from __future__ import annotations

import math
import select
import socket
import threading
import weakref
from collections.abc import Sequence


def readable(fds: Sequence[int], timeout: float) -> set[int]:
    """Those of `fds` that are readable, as soon as one is, at the latest after `timeout` seconds."""
    if not hasattr(select, "poll"):  # Windows
        return set(select.select(list(fds), [], [], max(0.0, timeout))[0])
    # poll() has no limit on the number of a descriptor, select() fails above 1023.
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    return {fd for fd, _ in poller.poll(max(0, math.ceil(timeout * 1000)))}


class _Bell:
    """One thread's pair. Closed with the thread: only its thread-local storage refers to it."""

    def __init__(self) -> None:
        self._rings, self._hears = socket.socketpair()
        self._rings.setblocking(False)
        self._hears.setblocking(False)
        weakref.finalize(self, _close, self._rings, self._hears)

    def fileno(self) -> int:
        return self._hears.fileno()

    def ring(self) -> None:
        try:
            self._rings.send(b"!")
        except BlockingIOError:
            pass  # it is full of rings already

    def silence(self) -> None:
        try:
            while self._hears.recv(4096):
                pass
        except BlockingIOError:
            pass


def _close(*ends: socket.socket) -> None:
    for end in ends:
        end.close()


class Waker:
    """Lets any number of threads wait, and wakes all of them.

    A thread's bell exists from its first wait on and keeps what rang since, so that nothing that came
    between a look and a wait is slept over; the first wait returns at once for the same reason.
    """

    def __init__(self) -> None:
        self._mine = threading.local()
        self._bells: weakref.WeakSet[_Bell] = weakref.WeakSet()
        self._lock = threading.Lock()

    def wake(self) -> None:
        """End every wait that is under way, and the next of each thread that is between two."""
        with self._lock:
            bells = list(self._bells)
        for bell in bells:
            bell.ring()

    def wait(self, timeout: float, fds: Sequence[int]) -> None:
        """Until woken, until one of `fds` is readable, or for `timeout` seconds."""
        bell: _Bell | None = getattr(self._mine, "bell", None)
        if bell is None:
            bell = self._mine.bell = _Bell()
            with self._lock:
                self._bells.add(bell)
            return
        if bell.fileno() in readable([bell.fileno(), *fds], timeout):
            bell.silence()
