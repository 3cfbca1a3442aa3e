"""A pool whose jobs end when the test says so."""

from __future__ import annotations

from collections.abc import Sequence

from taskmq.pools.base import Completion, Ending, Job, Pool


class HeldPool(Pool):
    """Takes up to `size` jobs and runs none. `blocked` makes it take nothing at all."""

    name = "held"
    enforces = frozenset({"terminate"})

    def __init__(self, size: int = 1, *, blocked: bool = False) -> None:
        self.size = size
        self.blocked = blocked
        self.jobs: dict[int, Job] = {}
        self.cancelled: dict[int, str] = {}
        self.dispatched: list[str] = []
        self.stopped: bool | None = None
        self.given_up: str | None = None
        self._ended: list[Completion] = []

    def start(self) -> None:
        pass

    def free(self) -> int:
        return 0 if self.blocked else self.size - len(self.jobs)

    def dispatch(self, job: Job) -> None:
        assert self.free() > 0, "dispatched without a free slot"
        self.jobs[job.number] = job
        self.dispatched.append(job.message.task_id)

    def running(self) -> list[str]:
        return [job.message.task_id for job in self.jobs.values()]

    def job(self, task_id: str) -> Job:
        return next(job for job in self.jobs.values() if job.message.task_id == task_id)

    def end(
        self, task_id: str, ending: Ending = Ending.SUCCEEDED, body: bytes | None = b"null"
    ) -> None:
        """Let a running job end."""
        job = self.job(task_id)
        if ending is not Ending.PROGRESS:
            del self.jobs[job.number]
        self._ended.append(Completion(number=job.number, ending=ending, body=body, error="said so"))

    def end_all(self) -> None:
        for task_id in self.running():
            self.end(task_id)

    def poll(self) -> list[Completion]:
        ended, self._ended = self._ended, []
        return ended

    def fds(self) -> Sequence[int]:
        return ()

    def next_timer(self) -> float | None:
        return None

    def cancel(self, number: int, reason: str) -> None:
        self.cancelled[number] = reason

    def terminate(self, number: int, ending: Ending, reason: str) -> bool:
        job = self.jobs.pop(number)
        self._ended.append(Completion(number=job.number, ending=ending, error=reason))
        return True

    def stop(self, *, hand_back: bool) -> None:
        self.stopped = hand_back
        ending = Ending.HANDED_BACK if hand_back else Ending.LOST
        for number in self.jobs:
            self._ended.append(Completion(number=number, ending=ending, error="stopped"))
        self.jobs.clear()

    def broken(self) -> str | None:
        return self.given_up
