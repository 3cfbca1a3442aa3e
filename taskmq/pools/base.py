"""The pool seam: where task code runs, apart from the coordinator that decides what runs.

A pool never buffers: `dispatch` is called only while `free()` is above 0 (P16). It reports endings
through `poll()`, and makes one of `fds()` readable when there is something to poll. A job that was
dispatched ends exactly once, whatever its code does.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskmq.message import JSON, Message

if TYPE_CHECKING:
    from taskmq.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One started delivery as the pool runs it.

    `number` names it between coordinator and pool and is never used twice by one worker. Limits are
    seconds, None is no limit.
    """

    number: int
    message: Message
    deliveries: int = 1
    worker: str = ""
    soft_time_limit: float | None = None
    time_limit: float | None = None


class Ending(enum.Enum):
    """How a run ended, before policy says what becomes of the message."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRY = "retry"
    REQUEUE = "requeue"  # Reject(requeue=True)
    BURY = "bury"  # Reject
    IGNORED = "ignored"
    UNREADABLE = "unreadable"  # body, shape or content type
    UNREGISTERED = "unregistered"  # no task of that name here
    CANCELLED = "cancelled"  # ended because it was revoked
    TIMED_OUT = "timed_out"  # hard time limit
    LOST = "lost"  # the child died
    HANDED_BACK = "handed_back"  # stopped by the pool at the drain deadline
    NOT_STARTED = "not_started"  # the pool could not begin it: no code of it ran
    PROGRESS = "progress"  # still running; `body` is the value


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What came of a job. `body` is the encoded value or failure.

    `error` is one line ("ValueError: boom"); `follow` is the embed of a foreign message that carried it
    only in its body. RETRY uses `delay`, `priority` and `new_body`. `reason` names a BURY. With `recycle`
    the process that ran it should not run another (it was out of memory).
    """

    number: int
    ending: Ending
    body: bytes | None = None
    content_type: str = JSON
    error: str = ""
    traceback: str | None = None
    delay: float = 0.0
    priority: int | None = None
    new_body: bytes | None = None
    follow: str | None = None
    label: str = ""
    children: tuple[str, ...] = ()
    reason: str = ""
    recycle: bool = False
    # seconds of wall time the task's function took
    runtime: float = 0.0


class Pool(ABC):
    """`size` slots. Only the coordinator calls it, apart from `serve`, and from `take` and what it gives."""

    name: str = ""
    #: which of "soft", "hard", "terminate" it can enforce; the worker says at start what it cannot.
    enforces: frozenset[str] = frozenset()
    #: whether user code runs on the main thread, so that the coordinator needs a thread of its own.
    needs_main_thread: bool = False
    #: whether user code runs on the thread that drives the coordinator, between its steps.
    between_steps: bool = False
    #: seconds that runs it cannot stop have for their last lines, once they were told to end.
    exit_grace: float = 0.0

    def can(self, what: str, task: Task[..., Any]) -> bool:
        """Whether it can enforce "soft", "hard" or "terminate" for this task."""
        return what in self.enforces

    @abstractmethod
    def start(self) -> None:
        """Bring up the slots and return; one that is not ready yet does not count in `free()`."""

    @abstractmethod
    def free(self) -> int:
        """How many jobs can be dispatched now without waiting."""

    def up(self) -> bool:
        """Whether there is any slot at all, busy or free; while there is none nothing is reserved."""
        return True

    @abstractmethod
    def dispatch(self, job: Job) -> None:
        """Begin a job; never blocks and never raises for what the job contains."""

    @abstractmethod
    def poll(self) -> list[Completion]:
        """Endings and progress since the last call; also does the pool's own timed work (limits, respawn)."""

    @abstractmethod
    def fds(self) -> Sequence[int]:
        """File descriptors that become readable when `poll` has something."""

    def ready(self) -> bool:
        """Whether `poll` has something now, where that can be told for less than a wait costs."""
        return False

    @abstractmethod
    def next_timer(self) -> float | None:
        """Monotonic time of the next limit or respawn `poll` must see to, if any."""

    @abstractmethod
    def cancel(self, number: int, reason: str) -> None:
        """Ask a job to stop: its `ctx.check_cancelled()` raises from now on (P19)."""

    @abstractmethod
    def terminate(self, number: int, ending: Ending, reason: str) -> bool:
        """Stop one job so that it ends as `ending`; False when this pool cannot."""

    @abstractmethod
    def stop(self, *, hand_back: bool) -> None:
        """End all slots. Jobs still running are killed; with `hand_back` they end as HANDED_BACK.

        Their endings come from a last `poll()`.
        """

    def unstopped(self) -> bool:
        """Whether code of a job still runs that `stop` has reported as ended.

        Its message must not be handed back while it does: another worker would run it at the same time.
        """
        return False

    def serve(self) -> None:
        """Run user code on the calling thread until `stop`; only where `needs_main_thread`."""
        raise NotImplementedError(f"pool {self.name} does not run on the main thread")

    def take(self) -> Callable[[], None] | None:
        """The run of a dispatched job that has not begun, for this thread; only where `between_steps`.

        It counts as begun from here on. Nothing rings at its end: whoever called it polls.
        """
        return None

    def broken(self) -> str | None:
        """Why this pool gave up and can run nothing any more, or None."""
        return None

    def pids(self) -> list[int]:
        """The processes of this pool, where it has any of its own."""
        return []

    def busy_pids(self) -> dict[int, int]:
        """Job number to the process that runs it, for `taskmq inspect active`."""
        return {}
