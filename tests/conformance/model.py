"""What a transport does, told as slowly and plainly as possible: lists, scans and sorts."""

from __future__ import annotations

from dataclasses import dataclass, field

from taskmq.message import Delivery
from taskmq.states import State

QUEUED, SCHEDULED, RESERVED, RUNNING = (
    State.QUEUED,
    State.SCHEDULED,
    State.RESERVED,
    State.RUNNING,
)


@dataclass
class Task:
    name: str
    queue: str
    priority: int
    seq: int
    visible_at: float
    due_at: float
    expires_at: float | None
    max_deliveries: int
    place: State = QUEUED
    deliveries: int = 0
    yields: int = 0
    retries: int = 0
    token: int = 0

    @property
    def key(self) -> tuple[int, float, int]:
        return (-self.priority, self.visible_at, self.seq)


@dataclass
class Model:
    now: float
    max_yields: int
    live: dict[str, Task] = field(default_factory=dict)
    ended: dict[str, State] = field(default_factory=dict)
    dead: dict[str, Task] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    seq: int = 0

    def insert(self, task: Task) -> None:
        self.seq += 1
        task.seq = self.seq
        self.ended.pop(task.name, None)
        self.live[task.name] = task
        self.wait(task)

    def wait(self, task: Task) -> None:
        task.place, task.token = QUEUED, 0
        if task.name in self.marked:
            self.end(task, State.REVOKED)

    def end(self, task: Task, state: State) -> None:
        del self.live[task.name]
        self.ended[task.name] = state

    def bury(self, task: Task, state: State) -> None:
        self.end(task, state)
        self.dead[task.name] = task

    def held(self, delivery: Delivery) -> Task | None:
        task = self.live.get(delivery.message.task_id)
        return task if task and task.token == delivery.token else None

    def claimable(self, queues: set[str]) -> list[Task]:
        tasks = [
            t
            for t in self.live.values()
            if t.place is QUEUED and t.due_at <= self.now and t.queue in queues - self.paused
        ]
        return sorted(tasks, key=lambda t: t.key)

    def peek(self, queues: set[str]) -> int | None:
        fresh = [t.priority for t in self.claimable(queues) if t.yields < self.max_yields]
        return max(fresh, default=None)

    def state(self, name: str) -> State:
        task = self.live.get(name)
        if task is None:
            return self.ended.get(name, State.UNKNOWN)
        if task.place is QUEUED and task.due_at > self.now and task.due_at == task.visible_at:
            return State.RETRYING if task.retries else SCHEDULED
        return task.place

    def pass_time(self, now: float) -> None:
        self.now = now
        for task in list(self.live.values()):
            late = task.expires_at is not None and task.expires_at <= now
            if late and task.place is QUEUED:
                self.end(task, State.EXPIRED)

    def lose(self, task: Task) -> None:
        if task.place is RESERVED:
            task.deliveries -= 1
        elif task.deliveries >= task.max_deliveries:
            return self.bury(task, State.DEAD)
        return self.wait(task)
