"""Waiting for descriptors, and one that a byte from anywhere makes readable."""

from __future__ import annotations

import math
import select
import socket
import time
import weakref
from collections.abc import Sequence

# Bytes read at once.
_MOST = 4096


class Bell:
    """A pair of sockets: whoever waits on `fd` hears of a ring. Thread-safe.

    Closed at the latest when nobody refers to it any more, so that no thread can be waiting on what is
    closed.
    """

    def __init__(self) -> None:
        # Sockets and not a pipe: Windows can wait for nothing else.
        self._hears, self._rings = socket.socketpair()
        self._hears.setblocking(False)
        self._rings.setblocking(False)
        self._close = weakref.finalize(self, _close, self._hears, self._rings)
        # Not when the program ends: a daemon thread may still wait on it.
        self._close.atexit = False

    @property
    def fd(self) -> int:
        """Readable from a ring until `drain`."""
        return self._hears.fileno()

    @property
    def write_fd(self) -> int:
        """Where `signal.set_wakeup_fd` writes."""
        return self._rings.fileno()

    def ring(self, number: int = 0) -> None:
        """Make `fd` readable, with a signal's number if there is one; from any thread."""
        try:
            self._rings.send(bytes((number,)))
        except OSError:
            pass  # full of rings is as good as readable, and closed means nobody waits

    def drain(self) -> bytes:
        """What was written: zeros for rings, numbers for signals. `fd` is readable again at the next."""
        written = b""
        try:
            while more := self._hears.recv(_MOST):
                written += more
                if len(more) < _MOST:
                    break  # that was all; another look would raise, which costs more than the read
        except BlockingIOError:
            pass
        return written

    def close(self) -> None:
        """Close both ends; idempotent, and whoever still rings is not heard."""
        self._close()


def _close(*ends: socket.socket) -> None:
    for end in ends:
        end.close()


def readable(fds: Sequence[int], timeout: float) -> set[int]:
    """Those of `fds` that are readable, as soon as one is, at the latest after `timeout` seconds."""
    if not hasattr(select, "poll"):  # Windows
        if not fds:
            time.sleep(max(0.0, timeout))
            return set()
        return set(select.select(list(fds), [], [], max(0.0, timeout))[0])
    # poll() has no limit on the number of a descriptor, select() fails above 1023.
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    return {fd for fd, _ in poller.poll(max(0, math.ceil(timeout * 1000)))}
