"""The result store beside the messages."""

from __future__ import annotations

from collections.abc import Sequence

from taskmq.message import ResultRecord
from taskmq.results.base import ResultStore
from taskmq.states import State
from taskmq.transports.memory.store import Store

# Expiry writes results without anybody's settle, so a waiter looks by itself now and then.
_LOOK = 0.25


class MemoryResults(ResultStore):
    """Records by task_id; written under the lock that settles the delivery."""

    with_messages = True

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self) -> None:
        """Nothing to connect to."""

    def close(self) -> None:
        """Nothing to let go of."""

    def get(self, task_id: str) -> ResultRecord | None:
        with self._store.at() as now:
            return self._store.result(task_id, now)

    def put(self, records: Sequence[ResultRecord]) -> None:
        with self._store.at():
            for record in records:
                self._store.put_result(record)

    def forget(self, task_ids: Sequence[str]) -> None:
        with self._store.at():
            for task_id in task_ids:
                self._store.results.pop(task_id, None)

    def wait(self, task_ids: Sequence[str], timeout: float | None) -> dict[str, ResultRecord]:
        clock = self._store.clock
        waited = 0.0
        while True:
            with self._store.at() as now:
                records = {t: self._store.result(t, now) for t in task_ids}
                final = {t: r for t, r in records.items() if r is not None and r.state.final}
                left = None if timeout is None else timeout - waited
                if final or (left is not None and left <= 0):
                    return final
                look = _LOOK if left is None else min(_LOOK, left)
                began = clock.monotonic()
                told = self._store.changed.wait(look)
                # A clock that only moves when told to must not make a wait endless.
                waited += clock.monotonic() - began if told else look

    def state(self, task_id: str) -> State:
        """Where the message is, then its record, then the dead letters."""
        with self._store.at() as now:
            return self._store.state(task_id, now)
