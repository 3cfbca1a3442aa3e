"""What happened, as events that `taskmq events` streams; kept in a capped ring, only while events are on.

    task.received    a delivery was reserved             task.succeeded   task.failed    task.retried
    task.started     it is in the pool                   task.revoked     task.dead      task.ignored
    task.progress    it reported progress                task.released    back to its place
    task.yielded     handed back for something urgent    task.lost        its lease was lost
    worker.online    worker.heartbeat    worker.offline
    queue.depth      depth and oldest age of a queue, by band
    queue.starving   the oldest message of a band has waited longer than `starvation_after`

Task events carry `task_id`, `task`, `queue`, `priority` and `worker`; never arguments or results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskmq.clock import Clock
from taskmq.coordination.base import Coordination
from taskmq.message import Message

TASK_RECEIVED = "task.received"
TASK_STARTED = "task.started"
TASK_PROGRESS = "task.progress"
TASK_SUCCEEDED = "task.succeeded"
TASK_FAILED = "task.failed"
TASK_RETRIED = "task.retried"
TASK_REVOKED = "task.revoked"
TASK_DEAD = "task.dead"
TASK_IGNORED = "task.ignored"
TASK_RELEASED = "task.released"
TASK_YIELDED = "task.yielded"
TASK_LOST = "task.lost"
WORKER_ONLINE = "worker.online"
WORKER_HEARTBEAT = "worker.heartbeat"
WORKER_OFFLINE = "worker.offline"
QUEUE_DEPTH = "queue.depth"
QUEUE_STARVING = "queue.starving"

KINDS: tuple[str, ...] = (
    TASK_RECEIVED,
    TASK_STARTED,
    TASK_PROGRESS,
    TASK_SUCCEEDED,
    TASK_FAILED,
    TASK_RETRIED,
    TASK_REVOKED,
    TASK_DEAD,
    TASK_IGNORED,
    TASK_RELEASED,
    TASK_YIELDED,
    TASK_LOST,
    WORKER_ONLINE,
    WORKER_HEARTBEAT,
    WORKER_OFFLINE,
    QUEUE_DEPTH,
    QUEUE_STARVING,
)

# Events wait this long for others, so that a busy worker writes them in few transactions.
FLUSH_INTERVAL = 0.25
FLUSH_COUNT = 200
# What a transport that does not answer may cost in memory; the oldest go first.
_MOST_PENDING = 10_000


class EventLog:
    """One worker's events on their way to the ring. `on` False makes every call free."""

    def __init__(self, *, clock: Clock, worker: str, on: bool) -> None:
        self.on = on
        self._clock = clock
        self._worker = worker
        self._pending: list[tuple[str, float, Mapping[str, Any]]] = []
        self._oldest = 0.0

    def add(self, kind: str, /, **fields: Any) -> None:
        """Note an event; `fields` are JSON values."""
        if not self.on:
            return
        if not self._pending:
            self._oldest = self._clock.monotonic()
        fields["worker"] = self._worker
        self._pending.append((kind, self._clock.now(), fields))
        if len(self._pending) > _MOST_PENDING:
            del self._pending[: _MOST_PENDING // 10]

    def task(self, kind: str, message: Message, /, **fields: Any) -> None:
        """Note an event of a task."""
        if self.on:
            self.add(
                kind,
                task_id=message.task_id,
                task=message.task,
                queue=message.queue,
                priority=message.priority,
                **fields,
            )

    def due(self, now: float) -> bool:
        """Whether the pending ones should be written now."""
        return bool(self._pending) and (
            len(self._pending) >= FLUSH_COUNT or now - self._oldest >= FLUSH_INTERVAL
        )

    def next_at(self) -> float | None:
        """Monotonic time at which `due` becomes true, if nothing else is added."""
        return self._oldest + FLUSH_INTERVAL if self._pending else None

    def flush(self, coordination: Coordination) -> None:
        """Write what is pending; what cannot be written stays. Raises `TransportError`."""
        if self._pending:
            coordination.emit(self._pending)
            self._pending = []
