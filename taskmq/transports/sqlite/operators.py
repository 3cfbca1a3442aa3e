"""What a person asks: status, peek, why, revoke, purge, pause. Dead letters are in `dead`."""

from __future__ import annotations

from collections.abc import Sequence

from taskmq.message import DeadLetter, Message
from taskmq.transports.base import QueueShare
from taskmq.transports.operators import Depth, Found, Operators, Peeked, QueueInfo, Revoked
from taskmq.transports.sqlite import dead, find, order, purging, revoking
from taskmq.transports.sqlite.depth import depth
from taskmq.transports.sqlite.tx import Engine, Tx


class SQLiteOperators(Operators):
    """Reads on a connection of their own, writes in small transactions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def depth(self, queues: Sequence[str] | None = None) -> list[Depth]:
        return self._engine.read(lambda tx: depth(tx, queues))

    def queues(self) -> list[QueueInfo]:
        def work(tx: Tx) -> list[QueueInfo]:
            rows = tx.execute("SELECT name, paused FROM queue ORDER BY name").fetchall()
            return [QueueInfo(name, bool(paused)) for name, paused in rows]

        return self._engine.read(work)

    def peek(self, queues: Sequence[QueueShare], limit: int) -> list[Peeked]:
        return self._engine.read(lambda tx: order.peek(tx, queues, limit))

    def find(self, task_id: str) -> list[Found]:
        return self._engine.read(lambda tx: find.find(tx, task_id))

    def revoke(self, task_ids: Sequence[str], *, reason: str = "") -> list[Revoked]:
        return revoking.revoke(self._engine, task_ids, reason)

    def is_revoked(self, task_id: str) -> bool:
        return self._engine.read(lambda tx: revoking.is_revoked(tx, task_id))

    def purge(self, queue: str) -> int:
        return purging.purge(self._engine, queue)

    def pause(self, queue: str) -> None:
        self._engine.write(lambda tx: tx.catalog.set_paused(tx.connection, queue, True))

    def resume(self, queue: str) -> None:
        self._engine.write(lambda tx: tx.catalog.set_paused(tx.connection, queue, False))

    def dead_letters(
        self, *, queue: str | None = None, after: int = 0, limit: int = 100
    ) -> list[DeadLetter]:
        return self._engine.read(lambda tx: dead.letters(tx, queue, after, limit))

    def dead_letter(self, key: str) -> DeadLetter | None:
        return self._engine.read(lambda tx: dead.letter(tx, key))

    def replay(self, numbers: Sequence[int], *, priority: int | None = None) -> list[Message]:
        return dead.replay(self._engine, numbers, priority)

    def drop(self, numbers: Sequence[int]) -> int:
        return self._engine.write(lambda tx: dead.drop(tx, numbers))
