"""The threads pool: `size` threads of the worker's process, for tasks that wait more than they compute.

A thread cannot be killed: hard limits and terminate are not enforced here, and a task that is still
running at the drain deadline is handed back as the last thing before the process exits. The soft limit
is raised when the task next executes Python code; a blocking call delays it.
"""

from __future__ import annotations

import ctypes
import threading
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from taskmq import interrupts
from taskmq.clock import Clock
from taskmq.pools.base import Completion, Ending, Job
from taskmq.pools.controls import Control
from taskmq.pools.execution import execute, interrupted
from taskmq.pools.in_process import InProcessPool
from taskmq.pools.outbox import Outbox
from taskmq.pools.soft_limit import SOFT_LIMIT_TEXT, soft_limit_error
from taskmq.pools.whole import whole

if TYPE_CHECKING:
    from taskmq.app import App

# How long `stop` waits for threads that run nothing.
_JOIN = 1.0


class ThreadRun:
    """One job on one of these threads, and the coordinator's way to interrupt it."""

    __slots__ = (
        "_app",
        "_interrupts",
        "_lock",
        "_thread",
        "control",
        "due_at",
        "job",
        "over",
    )

    def __init__(self, app: App, outbox: Outbox, job: Job, now: float) -> None:
        self.job = job
        self.over = False
        self._app = app
        self.control = Control(app, job.number, lambda done: whole(lambda: outbox.put(done)))
        self.due_at = None if job.soft_time_limit is None else now + job.soft_time_limit
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._interrupts = interrupts.here()

    def perform(self, app: App) -> Completion:
        """Run the job; on the thread that is interrupted."""
        if self.job.soft_time_limit is None:
            return execute(app, self.job, self.control)
        completion: Completion | None = None
        try:
            try:
                self._interrupts = interrupts.here()
                with self._lock:
                    self._thread = threading.get_ident()
                completion = execute(app, self.job, self.control)
            finally:
                self._leave()
        except BaseException as exc:
            # The limit hit between two lines of ours; it is raised once, so this is the only time.
            self._leave()
            completion = completion or interrupted(self.job, exc)
        return completion

    def interrupt(self) -> None:
        """Raise the soft limit in the thread, if the job still runs there."""
        self.due_at = None
        with self._lock:
            if self._thread is not None:
                error = soft_limit_error(self._app, self.job)
                # Not in the middle of a transaction: then as soon as the store is left.
                self._interrupts.raise_there(
                    error(SOFT_LIMIT_TEXT), partial(_raise_in, self._thread, error)
                )

    def _leave(self) -> None:
        with self._lock:
            self._thread = None
        # A limit that was set meanwhile is raised before this line: Python looks for it after the call that
        # gives the lock back. To take it back instead (by setting none) leaves every thread of the process
        # looking for it at each call, for ever: in 3.12 calls take half as long again (measured), and in 3.11
        # a thread that is profiled never gets into its next function.


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


class RunThreads:
    """Daemon threads that take runs and put their completions into an outbox; started as needed."""

    def __init__(self, app: App, outbox: Outbox, size: int) -> None:
        self._app = app
        self._outbox = outbox
        self._size = size
        self._queue: SimpleQueue[ThreadRun | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def ensure(self, count: int) -> None:
        """Have at least `count` threads, at most `size`."""
        while len(self._threads) < min(count, self._size):
            # Daemons: a task that never returns must not keep the process from exiting.
            thread = threading.Thread(
                target=self._work, name=f"taskmq-{len(self._threads) + 1}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def put(self, run: ThreadRun) -> None:
        """Have the next free thread perform it."""
        self._queue.put(run)

    def stop(self, *, busy: int) -> None:
        """Let the threads end; wait only for those that run nothing."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._queue.put(None)
        if not busy:
            for thread in threads:
                thread.join(_JOIN)

    def _work(self) -> None:
        while True:
            run = self._queue.get()
            if run is None:
                return
            completion = run.perform(self._app)
            run.over = True
            self._outbox.put(completion)


class ThreadsPool(InProcessPool[ThreadRun]):
    """`size` threads. The coordinator has a thread of its own: the main one."""

    name = "threads"
    enforces = frozenset({"soft"})

    def __init__(self, app: App, size: int, *, clock: Clock) -> None:
        super().__init__(app, size, clock=clock)
        self._threads = RunThreads(app, self._outbox, size)

    def start(self) -> None:
        self._threads.ensure(self.size)

    def free(self) -> int:
        return self.size - len(self._running)

    def dispatch(self, job: Job) -> None:
        run = ThreadRun(self._app, self._outbox, job, self._clock.monotonic())
        self._remember(run)
        self._threads.put(run)

    def _enforce(self, run: ThreadRun, now: float) -> None:
        run.interrupt()

    def terminate(self, number: int, ending: Ending, reason: str) -> bool:
        return False

    def stop(self, *, hand_back: bool) -> None:
        self._threads.stop(busy=len(self._running))
        self._abandon(hand_back=hand_back)
        self._outbox.close()
