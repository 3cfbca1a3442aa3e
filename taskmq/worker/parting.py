"""The end of a worker whose tasks share its process: code that no thread can stop ends with the process."""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import NoReturn

from taskmq.worker.coordinator import Coordinator

log = logging.getLogger("taskmq.worker")

# How long the main thread has to return once the coordinator is done, where tasks run on it.
_MAIN_THREAD_GRACE = 2.0
# How often leases are looked at meanwhile.
_KEEP_EVERY = 0.1


def on_main_thread() -> bool:
    """Whether the calling thread is the process's main one."""
    return threading.current_thread() is threading.main_thread()


def part(coordinator: Coordinator, code: int) -> None:
    """Hand back what the pool could not stop: once it is over, else together with the process."""
    if not coordinator.pool.unstopped():
        coordinator.hand_back()
    elif on_main_thread():
        _exit_with_tasks(coordinator, code)
    else:
        # Whoever runs a worker on a thread goes on, and so does the task: its lease has to end.
        log.warning("a task goes on in a worker that has stopped; its message is not handed back")


def await_main_thread(
    coordinator: Coordinator, back: threading.Event, code: int, *, may_exit: bool
) -> None:
    """Wait until `back` says that the main thread has returned from its tasks.

    Meanwhile what is not handed back yet is kept. With `may_exit` a task that stays too long ends
    together with the process.
    """
    pool, clock = coordinator.pool, coordinator.clock
    end = clock.monotonic() + (pool.exit_grace if pool.unstopped() else _MAIN_THREAD_GRACE)
    while (left := end - clock.monotonic()) > 0:
        if back.wait(min(left, _KEEP_EVERY)):
            return
        coordinator.keep()
    if may_exit and not back.is_set():
        _exit_with_tasks(coordinator, code)


def _exit_with_tasks(coordinator: Coordinator, code: int) -> NoReturn:
    """End the process while tasks run in it. Their messages go back at the last moment."""
    log.warning("a task that cannot be stopped still runs; the process exits now")
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # a task closed it
    try:
        coordinator.hand_back()
    finally:
        os._exit(code)
