"""The soft limit where tasks run on the main thread: a signal whose handler raises inside the task."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

from taskmq import interrupts
from taskmq.errors import SoftTimeLimitExceeded
from taskmq.pools.base import Completion, Job
from taskmq.pools.execution import execute, interrupted

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.context import RunControl

# Celery's children use the same signal, so projects keep away from it already; SIGALRM stays the
# task's own. Windows has neither.
SOFT_LIMIT_SIGNAL: int | None = getattr(signal, "SIGUSR1", None)

SOFT_LIMIT_TEXT = "the soft time limit of this task has passed"


class SoftLimit:
    """Raises once per `arm`, and never while it is not armed, so a late signal hits no other job."""

    __slots__ = ("_error",)

    def __init__(self) -> None:
        self._error: type[BaseException] | None = None

    def install(self) -> bool:
        """Take over the signal; False where that cannot be: handlers exist on the main thread only."""
        on_main = threading.current_thread() is threading.main_thread()
        if SOFT_LIMIT_SIGNAL is None or not on_main:
            return False
        signal.signal(SOFT_LIMIT_SIGNAL, self._on_signal)
        return True

    def arm(self, error: type[BaseException]) -> None:
        """From now on the signal raises `error`."""
        self._error = error

    def disarm(self) -> None:
        """From now on the signal does nothing."""
        self._error = None

    def execute(self, app: App, job: Job, control: RunControl) -> Completion:
        """Run a job on this thread, where the signal raises in it once its soft limit has passed."""
        completion: Completion | None = None
        try:
            if job.soft_time_limit is not None:
                self.arm(soft_limit_error(app, job))
            completion = execute(app, job, control)
            self.disarm()
        except BaseException as exc:
            # It hit between two lines of ours. The signal raises once per job, so this is the only time.
            completion = completion or interrupted(job, exc)
        return completion

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        error, self._error = self._error, None
        if error is not None:
            # Not in the middle of a transaction: then as soon as the store is left.
            interrupts.here().raise_here(error(SOFT_LIMIT_TEXT))


def soft_limit_error(app: App, job: Job) -> type[BaseException]:
    """What a task expects at its soft limit: its `soft_limit_error` if it has one (the Celery shim's do)."""
    task = app.registry.get(job.message.task)
    error: type[BaseException] = getattr(task, "soft_limit_error", SoftTimeLimitExceeded)
    return error
