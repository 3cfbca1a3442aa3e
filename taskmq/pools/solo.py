"""The solo pool: one task at a time on the main thread of the worker's process, between two steps.

For debugging, where a library insists on the main thread, and for very many short tasks. A keeper drives
the coordinator while a task takes long, so leases are renewed while it computes; code that holds the GIL
longer than a lease still loses it. Hard limits and terminate are not enforced.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from taskmq.clock import Clock
from taskmq.pools.base import Completion, Ending, Job, Pool
from taskmq.pools.controls import Control
from taskmq.pools.handlers import Handlers
from taskmq.pools.in_process import abandoned
from taskmq.pools.outbox import Outbox
from taskmq.pools.soft_limit import SOFT_LIMIT_SIGNAL, SoftLimit
from taskmq.pools.whole import whole

if TYPE_CHECKING:
    from taskmq.app import App


class SoloPool(Pool):
    """One slot, on the thread that calls `start`, and then what `take` gives it."""

    name = "solo"
    enforces = frozenset({"soft"} if SOFT_LIMIT_SIGNAL is not None else ())
    between_steps = True

    def __init__(self, app: App, *, clock: Clock) -> None:
        self.size = 1
        self._app = app
        self._clock = clock
        self._outbox = Outbox()
        self._soft = SoftLimit()
        self._handlers = Handlers()
        self._thread: int | None = None
        self._limits = False
        self._number: int | None = None
        self._control: Control | None = None
        self._next: tuple[Job, Control] | None = None
        self._soft_at: float | None = None
        self._ended: list[Completion] = []
        self._inside = False
        self._stopped = False

    def start(self) -> None:
        """Make this thread the one that runs tasks."""
        self._limits = self._soft.install()
        self._handlers.remember()
        self._thread = threading.get_ident()

    def free(self) -> int:
        return int(self._thread is not None and self._number is None)

    def up(self) -> bool:
        return self._thread is not None

    def dispatch(self, job: Job) -> None:
        self._number = job.number
        self._control = Control(self._app, job.number, self._report)
        self._next = (job, self._control)

    def take(self) -> Callable[[], None] | None:
        if self._next is None:
            return None
        job, control = self._next
        self._next = None
        self._inside = True
        if job.soft_time_limit is not None and self._limits:
            self._soft_at = self._clock.monotonic() + job.soft_time_limit
        return partial(self._run, job, control)

    def _run(self, job: Job, control: Control) -> None:
        try:
            completion = self._soft.execute(self._app, job, control)
        finally:
            self._inside = False
        # Else the worker might not hear its signals any more.
        self._handlers.restore()
        self._outbox.put_silently(completion)

    def _report(self, progress: Completion) -> None:
        whole(lambda: self._outbox.put(progress))

    def poll(self) -> list[Completion]:
        ended, self._ended = self._ended, []
        for completion in self._outbox.take():
            if completion.number != self._number:
                continue
            ended.append(completion)
            if completion.ending is not Ending.PROGRESS:
                self._number = self._control = self._soft_at = None
        if self._soft_at is not None and self._soft_at <= self._clock.monotonic():
            self._soft_at = None
            assert self._thread is not None
            assert SOFT_LIMIT_SIGNAL is not None
            # To the thread and not the process: it also ends a blocking call there.
            signal.pthread_kill(self._thread, SOFT_LIMIT_SIGNAL)
        return ended

    def fds(self) -> Sequence[int]:
        return (self._outbox.fd,)

    def next_timer(self) -> float | None:
        return self._soft_at

    def cancel(self, number: int, reason: str) -> None:
        if number == self._number and self._control is not None:
            self._control.reason = reason

    def terminate(self, number: int, ending: Ending, reason: str) -> bool:
        return False

    def unstopped(self) -> bool:
        return self._stopped and self._inside

    def stop(self, *, hand_back: bool) -> None:
        self._stopped = True
        self._next = None
        if self._number is not None:
            self._ended += abandoned((self._number,), hand_back=hand_back)
        self._number = self._control = self._soft_at = None
        self._outbox.close()
