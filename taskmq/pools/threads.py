"""The threads pool: `size` threads of the worker's process, for tasks that wait more than they compute.

A thread cannot be killed: hard limits and terminate are not enforced here, and a task that is still
running at the drain deadline is handed back while its thread goes on until the process exits. The soft
limit is raised when the task next executes Python code; a blocking call delays it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING

from taskmq.clock import Clock
from taskmq.pools.base import Completion, Ending, Job, Pool
from taskmq.pools.execution import execute, interrupted
from taskmq.pools.outbox import LocalControl, Outbox
from taskmq.pools.soft_limit import soft_limit_error

if TYPE_CHECKING:
    from taskmq.app import App

# How long `stop` waits for threads that run nothing.
_JOIN = 1.0


class ThreadRun:
    """One job on one of these threads, and the coordinator's way to interrupt it."""

    __slots__ = ("_error", "_interrupted", "_lock", "_thread", "control", "job", "soft_at")

    def __init__(self, app: App, outbox: Outbox, job: Job, now: float) -> None:
        self.job = job
        self.control = LocalControl(app, outbox, job.number)
        self.soft_at = None if job.soft_time_limit is None else now + job.soft_time_limit
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._interrupted = False
        self._error = soft_limit_error(app, job)

    def perform(self, app: App) -> Completion:
        """Run the job; on the thread that is interrupted."""
        if self.job.soft_time_limit is None:
            return execute(app, self.job, self.control)
        completion: Completion | None = None
        try:
            with self._lock:
                self._thread = threading.get_ident()
            completion = execute(app, self.job, self.control)
            self._leave()
        except BaseException as exc:
            # The limit hit between two lines of ours; it is raised once, so this is the only time.
            self._leave()
            completion = completion or interrupted(self.job, exc)
        return completion

    def interrupt(self) -> None:
        """Raise the soft limit in the thread, if the job still runs there."""
        self.soft_at = None
        with self._lock:
            if self._thread is not None:
                self._interrupted = True
                _raise_in(self._thread, self._error)

    def _leave(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
        if self._interrupted and thread is not None:
            # Set but not yet raised: it would hit the next job.
            _raise_in(thread, None)


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    what = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), what)


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
        self._queue.put(run)

    def stop(self, *, busy: int) -> None:
        """Let the threads end; wait only for those that run nothing."""
        for _ in self._threads:
            self._queue.put(None)
        if not busy:
            for thread in self._threads:
                thread.join(_JOIN)

    def _work(self) -> None:
        while True:
            run = self._queue.get()
            if run is None:
                return
            self._outbox.put(run.perform(self._app))


class ThreadsPool(Pool):
    """`size` threads. The coordinator has a thread of its own: the main one."""

    name = "threads"
    enforces = frozenset({"soft"})

    def __init__(self, app: App, size: int, *, clock: Clock) -> None:
        self.size = size
        self._app = app
        self._clock = clock
        self._outbox = Outbox()
        self._threads = RunThreads(app, self._outbox, size)
        self._running: dict[int, ThreadRun] = {}
        self._timed: dict[int, ThreadRun] = {}
        self._ended: list[Completion] = []

    def start(self) -> None:
        self._threads.ensure(self.size)

    def free(self) -> int:
        return self.size - len(self._running)

    def dispatch(self, job: Job) -> None:
        run = ThreadRun(self._app, self._outbox, job, self._clock.monotonic())
        self._running[job.number] = run
        if run.soft_at is not None:
            self._timed[job.number] = run
        self._threads.put(run)

    def poll(self) -> list[Completion]:
        ended, self._ended = self._ended, []
        for completion in self._outbox.take():
            if completion.number not in self._running:
                continue  # of a run that was handed back
            ended.append(completion)
            if completion.ending is not Ending.PROGRESS:
                del self._running[completion.number]
                self._timed.pop(completion.number, None)
        if self._timed:
            self._interrupt_late()
        return ended

    def _interrupt_late(self) -> None:
        now = self._clock.monotonic()
        for number, run in list(self._timed.items()):
            if run.soft_at is not None and run.soft_at <= now:
                del self._timed[number]
                run.interrupt()

    def fds(self) -> Sequence[int]:
        return (self._outbox.fd,)

    def next_timer(self) -> float | None:
        times = [run.soft_at for run in self._timed.values() if run.soft_at is not None]
        return min(times) if times else None

    def cancel(self, number: int, reason: str) -> None:
        run = self._running.get(number)
        if run is not None:
            run.control.reason = reason

    def terminate(self, number: int, ending: Ending, reason: str) -> bool:
        return False

    def stop(self, *, hand_back: bool) -> None:
        self._threads.stop(busy=len(self._running))
        self._ended += abandoned(self._running, hand_back=hand_back)
        self._running.clear()
        self._timed.clear()
        self._outbox.close()


def abandoned(numbers: Iterable[int], *, hand_back: bool) -> list[Completion]:
    """The endings of runs that cannot be stopped and whose process is about to exit."""
    ending = Ending.HANDED_BACK if hand_back else Ending.LOST
    return [
        Completion(number=number, ending=ending, error="the worker stopped while it ran")
        for number in numbers
    ]
