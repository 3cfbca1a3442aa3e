"""The asyncio pool: `async def` tasks run side by side on one loop, on the worker's main thread.

Any other task runs on a thread, so that it does not hold up the loop. Soft and hard limits and
terminate reach an `async def` at its next `await`: the soft one as `SoftTimeLimitExceeded`, the hard one
as a cancellation that is repeated until the task ends. A task that never awaits cannot be stopped, and
holds up the others. On a thread only the soft limit is enforced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from taskmq.clock import Clock
from taskmq.pools.base import Completion, Ending, Job
from taskmq.pools.controls import Control
from taskmq.pools.execution import aexecute, interrupted
from taskmq.pools.handlers import GROUP_SIGNALS, Handlers
from taskmq.pools.in_process import InProcessPool
from taskmq.pools.interruptible import Interruptible, wind_up
from taskmq.pools.outbox import Outbox
from taskmq.pools.soft_limit import soft_limit_error
from taskmq.pools.threads import RunThreads, ThreadRun

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.task import Task

log = logging.getLogger("taskmq.pool")

# How often a task that swallows its cancellation is cancelled again.
CANCEL_AGAIN = 1.0
# How long cancelled tasks have for their finally blocks when the pool stops.
EXIT_GRACE = 2.0


class LoopRun:
    """One `async def` on the loop. What touches the task runs on the loop's thread."""

    __slots__ = (
        "_inside",
        "_task",
        "control",
        "error",
        "forced",
        "hard_at",
        "job",
        "over",
        "soft_at",
    )

    def __init__(self, app: App, outbox: Outbox, job: Job, now: float) -> None:
        self.job = job
        self.over = False
        self.control = Control(app, job.number, outbox.put)
        self.soft_at = None if job.soft_time_limit is None else now + job.soft_time_limit
        self.hard_at = None if job.time_limit is None else now + job.time_limit
        self.error = soft_limit_error(app, job)
        self.forced: tuple[Ending, str] | None = None
        self._task: asyncio.Task[Completion] | None = None
        self._inside: Interruptible | None = None

    def begin(
        self, app: App, ended: Callable[[Completion], None], over: Callable[[], bool]
    ) -> None:
        """Start it; on the loop. `over` says whether the loop has come to its end."""
        task = asyncio.ensure_future(aexecute(app, self.job, self.control, around=self._around))
        self._task = task
        # A callback and not a line after the await: it also comes when the task is cancelled before it
        # first runs.
        task.add_done_callback(lambda done: self._end(done, ended, over()))

    def _end(
        self, done: asyncio.Task[Completion], ended: Callable[[Completion], None], over: bool
    ) -> None:
        self.over = True
        ended(self._completion(done, over))

    async def _around(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        self._inside = Interruptible(coroutine)
        return await self._inside

    @property
    def due_at(self) -> float | None:
        """When its next limit passes."""
        if self.hard_at is None:
            return self.soft_at
        return self.hard_at if self.soft_at is None else min(self.soft_at, self.hard_at)

    def interrupt(self) -> None:
        """Raise the soft limit inside; on the loop."""
        if self._task is not None and self._inside is not None and not self._task.done():
            error = self.error("the soft time limit of this task has passed")
            self._inside.interrupt(self._task, error)

    def cancel(self) -> None:
        """Cancel it; on the loop."""
        if self._task is not None:
            self._task.cancel()

    def _completion(self, done: asyncio.Task[Completion], over: bool) -> Completion:
        if self.forced is not None:
            ending, reason = self.forced
            return Completion(number=self.job.number, ending=ending, error=reason)
        if not done.cancelled():
            return done.result()
        if over:
            error = "the event loop ended while it ran"
            return Completion(number=self.job.number, ending=Ending.LOST, error=error)
        return interrupted(self.job, asyncio.CancelledError("the task cancelled itself"))


class AsyncioPool(InProcessPool[LoopRun | ThreadRun]):
    """`size` slots, shared by tasks on the loop and tasks on threads."""

    name = "asyncio"
    enforces = frozenset({"soft", "hard", "terminate"})
    needs_main_thread = True
    exit_grace = EXIT_GRACE + 0.5

    def __init__(self, app: App, size: int, *, clock: Clock) -> None:
        super().__init__(app, size, clock=clock)
        self._threads = RunThreads(app, self._outbox, size)
        self._on_threads = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        # Set once the loop ends, whoever ended it: what is cancelled from then on did not fail.
        self._over = False
        self._wound_up = False
        # Not those that tasks have among themselves: another one still runs.
        self._handlers = Handlers(GROUP_SIGNALS, timers=False)

    def can(self, what: str, task: Task[..., Any]) -> bool:
        return what == "soft" or task.is_async

    # -- the main thread --------------------------------------------------------------------------

    def serve(self) -> None:
        """Run the loop until `stop`; on the main thread."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._handlers.remember()
        try:
            loop.run_until_complete(self._serve())
        finally:
            self._over = True
            wind_up(loop)
            self._wound_up = True

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._outbox.wake()
        await self._stopping.wait()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=EXIT_GRACE)

    def _ended_on_loop(self, completion: Completion) -> None:
        # Else the worker would not hear its signals any more.
        self._handlers.restore()
        self._outbox.put(completion)

    # -- the coordinator's thread -----------------------------------------------------------------

    def start(self) -> None:
        """Nothing to bring up: the slots are there once `serve` runs."""

    def free(self) -> int:
        return self.size - len(self._running) if self.up() else 0

    def up(self) -> bool:
        return self._loop is not None and not self._over

    def dispatch(self, job: Job) -> None:
        now = self._clock.monotonic()
        task = self._app.registry.get(job.message.task)
        run: LoopRun | ThreadRun
        if task is not None and task.is_async:
            run = LoopRun(self._app, self._outbox, job, now)
            if not self._on_loop(run.begin, self._app, self._ended_on_loop, lambda: self._over):
                self._ended.append(
                    Completion(
                        number=job.number, ending=Ending.NOT_STARTED, error="the loop has ended"
                    )
                )
                return
        else:
            run = ThreadRun(self._app, self._outbox, job, now)
            self._on_threads += 1
            self._threads.ensure(self._on_threads)
            self._threads.put(run)
        self._remember(run)

    def _on_loop(self, call: Any, *args: Any) -> bool:
        try:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            return False  # closed
        return True

    def _forget(self, number: int) -> LoopRun | ThreadRun:
        run = super()._forget(number)
        if isinstance(run, ThreadRun):
            self._on_threads -= 1
        return run

    def _enforce(self, run: LoopRun | ThreadRun, now: float) -> None:
        if isinstance(run, ThreadRun):
            run.interrupt()
        elif run.hard_at is not None and run.hard_at <= now:
            limit = run.job.time_limit or 0.0
            self._force(run, Ending.TIMED_OUT, f"the time limit of {limit:g} s has passed")
        else:
            run.soft_at = None
            self._on_loop(run.interrupt)

    def _force(self, run: LoopRun, ending: Ending, reason: str) -> None:
        run.forced = run.forced or (ending, reason)
        run.soft_at = None
        run.hard_at = self._clock.monotonic() + CANCEL_AGAIN
        self._timed[run.job.number] = run
        self._on_loop(run.cancel)

    def terminate(self, number: int, ending: Ending, reason: str) -> bool:
        run = self._running.get(number)
        if not isinstance(run, LoopRun):
            return False
        self._force(run, ending, reason)
        return True

    def unstopped(self) -> bool:
        return any(
            not run.over and not (self._wound_up and isinstance(run, LoopRun)) for run in self._left
        )

    def stop(self, *, hand_back: bool) -> None:
        self._threads.stop(busy=self._on_threads)
        self._abandon(hand_back=hand_back)
        if self._stopping is not None:
            self._on_loop(self._stopping.set)
        self._outbox.close()
