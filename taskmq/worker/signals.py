"""The signals that stop a worker, and how they reach its coordinator.

Python runs signal handlers on the main thread between two bytecodes; the coordinator may be on another
one, or in a wait. So the C handler writes the signal's number into a bell (`signal.set_wakeup_fd`), and
the coordinator reads it like any other news. A task on the main thread may have put a bell of its own there,
as event loops do that handle signals: then the Python handler passes the number on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from taskmq.bell import Bell

#: TERM, INT and HUP drain; a second one, or QUIT, stops now.
DRAIN_SIGNALS: frozenset[int] = frozenset(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)
STOP_SIGNALS: frozenset[int] = frozenset(
    getattr(signal, name) for name in ("SIGQUIT",) if hasattr(signal, name)
)


@contextmanager
def signals_to(bell: Bell) -> Iterator[None]:
    """Send the worker's signals to `bell` inside the block; nothing outside of the main thread.

    A HUP that is ignored at the start (nohup) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = bell.write_fd

    def note(number: int, frame: FrameType | None) -> None:
        try:
            # In one call: what comes meanwhile is heard.
            there = signal.set_wakeup_fd(ours, warn_on_full_buffer=False)
            if there != ours:
                bell.ring(number)
                signal.set_wakeup_fd(there)
        except (OSError, ValueError):
            pass  # one of them is closed

    before: dict[int, Any] = {}
    for number in DRAIN_SIGNALS | STOP_SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            continue
        before[number] = signal.signal(number, note)
    fd = signal.set_wakeup_fd(bell.write_fd, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(fd)
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
