"""Jobs for tests of pools, and a way to run one to its end."""

from __future__ import annotations

import itertools
from typing import Any

from taskmq.app import App
from taskmq.pools.base import Completion, Ending, Job, Pool
from taskmq.task import Task
from tests.support.waiting import wait_until

_numbers = itertools.count(1)


def job_of(app: App, task: Task[..., Any] | str, *args: Any, **changes: Any) -> Job:
    """A job that calls `task(*args)`; `changes` are those of the job or of its message options."""
    own = {
        name: changes.pop(name)
        for name in ("soft_time_limit", "time_limit", "deliveries")
        if name in changes
    }
    message = app.message(task, args, **changes)
    return Job(number=next(_numbers), message=message, **own)


class Control:
    """A `RunControl` that remembers what was reported."""

    def __init__(self, reason: str | None = None) -> None:
        self.reports: list[tuple[Any, str]] = []
        self.reason = reason

    def report(self, value: Any, label: str) -> None:
        self.reports.append((value, label))

    def cancelled(self) -> str | None:
        return self.reason


class Driver:
    """Polls a pool as the coordinator does and keeps what ended."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.ended: dict[int, Completion] = {}
        self.progress: list[Completion] = []

    def poll(self) -> bool:
        for completion in self.pool.poll():
            if completion.ending is Ending.PROGRESS:
                self.progress.append(completion)
            else:
                assert completion.number not in self.ended, "a job ended twice"
                self.ended[completion.number] = completion
        return True

    def wait_free(self, count: int = 1) -> None:
        wait_until(lambda: self.poll() and self.pool.free() >= count, what=f"{count} free slots")

    def dispatch(self, job: Job) -> Job:
        self.wait_free()
        self.pool.dispatch(job)
        return job

    def end_of(self, job: Job) -> Completion:
        wait_until(
            lambda: self.poll() and job.number in self.ended, what=f"the end of {job.number}"
        )
        return self.ended[job.number]

    def run(self, job: Job) -> Completion:
        return self.end_of(self.dispatch(job))
