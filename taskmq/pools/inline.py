"""The inline pool, for tests: a job runs on the caller's thread, inside `poll`. No limit is enforced."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from taskmq.pools.base import Completion, Ending, Job, Pool
from taskmq.pools.controls import Control
from taskmq.pools.execution import execute

if TYPE_CHECKING:
    from taskmq.app import App


class InlinePool(Pool):
    """`size` jobs are taken at once and run one after the other, in the order of dispatch."""

    name = "inline"

    def __init__(self, app: App, size: int = 1) -> None:
        self.size = size
        self._app = app
        self._jobs: deque[tuple[Job, Control]] = deque()
        self._done: list[Completion] = []

    def start(self) -> None:
        """Nothing to bring up."""

    def free(self) -> int:
        return self.size - len(self._jobs)

    def dispatch(self, job: Job) -> None:
        self._jobs.append((job, Control(self._app, job.number, self._done.append)))

    def poll(self) -> list[Completion]:
        while self._jobs:
            job, control = self._jobs[0]
            completion = execute(self._app, job, control)
            self._jobs.popleft()
            self._done.append(completion)
        # Emptied in place: the controls hold this list.
        done = list(self._done)
        self._done.clear()
        return done

    def fds(self) -> Sequence[int]:
        return ()

    def next_timer(self) -> float | None:
        return None

    def cancel(self, number: int, reason: str) -> None:
        for job, control in self._jobs:
            if job.number == number:
                control.reason = reason

    def terminate(self, number: int, ending: Ending, reason: str) -> bool:
        return False

    def stop(self, *, hand_back: bool) -> None:
        ending = Ending.HANDED_BACK if hand_back else Ending.LOST
        for job, _ in self._jobs:
            self._done.append(Completion(number=job.number, ending=ending, error="stopped"))
        self._jobs.clear()
