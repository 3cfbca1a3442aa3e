"""Waking the coordinator from a signal handler or from another thread, by one descriptor.

Python runs signal handlers on the main thread between two bytecodes; the coordinator may be on another
one, or in a wait. So the C handler writes the signal's number into a socket (`signal.set_wakeup_fd`), and
the coordinator reads it like any other news.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_RING = b"\0"

#: TERM, INT and HUP drain; a second one, or QUIT, stops now.
DRAIN_SIGNALS: frozenset[int] = frozenset(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)
STOP_SIGNALS: frozenset[int] = frozenset(
    getattr(signal, name) for name in ("SIGQUIT",) if hasattr(signal, name)
)


class Wakeup:
    """A socket pair: one end is written, the other is waited for."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)

    @property
    def fd(self) -> int:
        """Readable when there is news."""
        return self._read.fileno()

    @property
    def write_fd(self) -> int:
        """Where `signal.set_wakeup_fd` writes."""
        return self._write.fileno()

    def ring(self) -> None:
        """Wake; from any thread."""
        try:
            self._write.send(_RING)
        except (BlockingIOError, OSError):
            pass  # it is full of news, or nobody listens any more

    def drain(self) -> bytes:
        """What was written: signal numbers, and zeros for rings."""
        try:
            return self._read.recv(4096)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close both ends; whoever still rings is not heard."""
        self._read.close()
        self._write.close()


@contextmanager
def signals_to(wakeup: Wakeup) -> Iterator[None]:
    """Send the worker's signals to `wakeup` inside the block; nothing outside of the main thread.

    A HUP that is ignored at the start (nohup) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}
    for number in DRAIN_SIGNALS | STOP_SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            continue
        before[number] = signal.signal(number, _noted)
    fd = signal.set_wakeup_fd(wakeup.write_fd, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(fd)
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


def _noted(number: int, frame: FrameType | None) -> None:
    """The number was written by the C handler already; a Python handler only has to exist."""
