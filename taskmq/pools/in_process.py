"""What the pools have in common whose runs share the coordinator's process: threads, and an event loop.

Their runs come back through an outbox, and the coordinator's thread keeps the list of those with a limit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from taskmq.clock import Clock
from taskmq.pools.base import Completion, Ending, Job, Pool
from taskmq.pools.controls import Control
from taskmq.pools.outbox import Outbox

if TYPE_CHECKING:
    from taskmq.app import App


class Run(Protocol):
    """One job that runs in this process."""

    job: Job
    control: Control
    # Set when its code has come to its end.
    over: bool

    @property
    def due_at(self) -> float | None:
        """Monotonic time of its next limit, None when there is none."""


R = TypeVar("R", bound=Run)


class InProcessPool(Pool, Generic[R]):
    """`size` slots. A run that is forgotten may still come back: what it says then is dropped."""

    def __init__(self, app: App, size: int, *, clock: Clock) -> None:
        self.size = size
        self._app = app
        self._clock = clock
        self._outbox = Outbox()
        self._running: dict[int, R] = {}
        self._timed: dict[int, R] = {}
        self._ended: list[Completion] = []
        # Those that were running at the stop.
        self._left: list[R] = []

    def _remember(self, run: R) -> None:
        self._running[run.job.number] = run
        if run.due_at is not None:
            self._timed[run.job.number] = run

    def _forget(self, number: int) -> R:
        self._timed.pop(number, None)
        return self._running.pop(number)

    def poll(self) -> list[Completion]:
        ended, self._ended = self._ended, []
        for completion in self._outbox.take():
            if completion.number not in self._running:
                continue  # of a run that was handed back
            ended.append(completion)
            if completion.ending is not Ending.PROGRESS:
                self._forget(completion.number)
        if self._timed:
            now = self._clock.monotonic()
            for number, run in list(self._timed.items()):
                due_at = run.due_at
                if due_at is not None and due_at <= now:
                    self._enforce(run, now)
                if run.due_at is None:
                    del self._timed[number]
        return ended

    @abstractmethod
    def _enforce(self, run: R, now: float) -> None:
        """A limit of this run has passed; moves its `due_at` on."""

    def fds(self) -> Sequence[int]:
        return (self._outbox.fd,)

    def next_timer(self) -> float | None:
        times = [run.due_at for run in self._timed.values() if run.due_at is not None]
        return min(times) if times else None

    def cancel(self, number: int, reason: str) -> None:
        run = self._running.get(number)
        if run is not None:
            run.control.reason = reason

    def unstopped(self) -> bool:
        return any(not run.over for run in self._left)

    def _abandon(self, *, hand_back: bool) -> None:
        self._ended += abandoned(self._running, hand_back=hand_back)
        self._left += self._running.values()
        self._running.clear()
        self._timed.clear()


def abandoned(numbers: Iterable[int], *, hand_back: bool) -> list[Completion]:
    """The endings of runs that cannot be stopped and whose process is about to exit."""
    ending = Ending.HANDED_BACK if hand_back else Ending.LOST
    return [
        Completion(number=number, ending=ending, error="the worker stopped while it ran")
        for number in numbers
    ]
