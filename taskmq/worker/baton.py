"""The baton: the right to drive the coordinator, where the thread that drives it also runs the tasks.

    runner (the main thread)   step ─ task ─ step ─ task ─ step ─ a long task ············· step
    keeper                                                        └ step ─ wait ─ … ─ step ┘

The runner holds it whenever it runs no task, so nothing is handed over between a short task and the steps
around it. While a task runs nobody needs it at first; once the task is long the keeper takes it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Baton:
    """Held by one thread at a time, at first by the one that makes it: the runner.

    `without` and `retire` are the runner's, the other methods the keeper's. `ring` ends whatever the
    keeper waits in.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._lock.acquire()
        #: Set while the runner is back from its task and waits for the baton.
        self.asked_back = threading.Event()
        # What the keeper goes by: how many tasks have begun, and whether the last of them still runs.
        self._begun = 0
        self._running = False
        # Cleared by a keeper with nothing to look at; the next task sets it, others pay nothing for it.
        self._looked_at = threading.Event()
        self._retired = False

    def without(self, task: Callable[[], object]) -> None:
        """Let go of the baton, run `task`, and have the baton again, also when `task` raises."""
        self._begun += 1
        self._running = True
        if not self._looked_at.is_set():
            self._looked_at.set()
        self._lock.release()
        try:
            task()
        finally:
            self._running = False
            if not self._lock.acquire(blocking=False):
                self.asked_back.set()
                self._ring()
                self._lock.acquire()
                self.asked_back.clear()

    def retire(self) -> None:
        """There are no more tasks: `long_task` returns None."""
        self._retired = True
        self._looked_at.set()

    def long_task(self, grace: float) -> int | None:
        """Wait for a task that has run for `grace` seconds; its number. None once there are no more.

        It is noticed within twice that time. Looks every `grace` seconds while tasks begin, and sleeps
        while none does.
        """
        seen = 0
        while not self._retired:
            begun, running = self._begun, self._running
            if begun == seen:
                if running:
                    return begun
                self._looked_at.clear()
                # In this order: whoever begins a task says so before it looks at the mark.
                if not self._running and not self._retired:
                    self._looked_at.wait()
                continue
            seen = begun
            time.sleep(grace)
        return None

    def take_over(self, task: int) -> bool:
        """Take the baton while the runner is in this task; whether it could be had, and is to be given up."""
        if not self._lock.acquire(blocking=False):
            return False
        if self._running and self._begun == task:
            return True
        self._lock.release()
        return False

    def give_up(self) -> None:
        """Let the runner have it; at the latest when `asked_back` is set."""
        self._lock.release()
