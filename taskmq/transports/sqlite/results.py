"""The result store beside the messages: written in the transaction that settles the delivery."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from taskmq.errors import ResultUnavailable, TransportError
from taskmq.message import ResultRecord
from taskmq.policy.endings import waiting_state
from taskmq.results.base import ResultStore
from taskmq.states import State
from taskmq.transports.sqlite.pace import for_result
from taskmq.transports.sqlite.places import locate
from taskmq.transports.sqlite.records import RECORD_COLUMNS, put_records, to_record
from taskmq.transports.sqlite.times import seconds
from taskmq.transports.sqlite.tx import Engine, Tx
from taskmq.transports.sqlite.waiter import Waiter

# The longest a waiter sleeps without looking: bounds what no wake-up told it of.
_LOOK = 0.5

_CURRENT = "(expires_at IS NULL OR expires_at > ?)"
_GET = f"SELECT {RECORD_COLUMNS} FROM result WHERE task_id = ? AND {_CURRENT}"  # noqa: S608
_FINAL = (
    f"SELECT {RECORD_COLUMNS} FROM result WHERE final AND {_CURRENT} "  # noqa: S608
    "AND task_id IN (SELECT value FROM json_each(?))"
)
# The live messages of a task, newest first: under its own id, or a message that bears another.
LIVE_MESSAGES = (
    "SELECT seq FROM message WHERE message_id = ? AND task_id IS NULL "
    "UNION ALL SELECT seq FROM message WHERE task_id = ? ORDER BY seq DESC"
)
_DEAD = (
    "SELECT 1 FROM dead WHERE message_id = ? AND task_id IS NULL "
    "UNION ALL SELECT 1 FROM dead WHERE task_id = ? LIMIT 1"
)


class SQLiteResults(ResultStore):
    """Records by task_id."""

    with_messages = True

    def __init__(self, engine: Engine, waiter: Waiter) -> None:
        self._engine = engine
        self._waiter = waiter

    def open(self) -> None:
        """Opened with the transport."""
        self._engine.store.open()

    def close(self) -> None:
        """Closed with the transport, which others may still use."""

    def get(self, task_id: str) -> ResultRecord | None:
        return self._engine.read(lambda tx: current(tx, task_id))

    def put(self, records: Sequence[ResultRecord]) -> None:
        self._engine.write(lambda tx: put_records(tx, records))

    def forget(self, task_ids: Sequence[str]) -> None:
        ids = json.dumps(list(task_ids))
        self._engine.write(
            lambda tx: tx.execute(
                "DELETE FROM result WHERE task_id IN (SELECT value FROM json_each(?))", (ids,)
            )
        )

    def wait(self, task_ids: Sequence[str], timeout: float | None) -> dict[str, ResultRecord]:
        # The machine's own clock: who waits is a real thread, whatever clock the messages follow.
        deadline = None if timeout is None else time.monotonic() + timeout
        ids = json.dumps(list(task_ids))
        pace = for_result()
        while True:
            found = self._engine.read(lambda tx: _finals(tx, ids))
            left = None if deadline is None else deadline - time.monotonic()
            if found or (left is not None and left <= 0):
                return found
            try:
                longest = _LOOK if left is None else min(_LOOK, left)
                self._waiter.wait(longest, purpose="result", pace=pace)
            except TransportError as exc:
                if not exc.retryable:
                    raise ResultUnavailable(f"waiting for a result: {exc}") from exc

    def state(self, task_id: str) -> State:
        return self._engine.read(lambda tx: state_of(tx, task_id))


def current(tx: Tx, task_id: str) -> ResultRecord | None:
    """The record of a task that has not passed its time."""
    row = tx.row(_GET, (task_id, tx.now))
    return None if row is None else to_record(row)


def _finals(tx: Tx, ids: str) -> dict[str, ResultRecord]:
    rows = tx.execute(_FINAL, (tx.now, ids)).fetchall()
    return {row[0]: to_record(row) for row in rows}


def state_of(tx: Tx, task_id: str) -> State:
    """Where its newest message is, else its record, else whether it is a dead letter."""
    live = tx.row(LIVE_MESSAGES, (task_id, task_id))
    if live is not None:
        return message_state(tx, live[0])
    record = current(tx, task_id)
    if record is not None:
        return record.state
    return State.UNKNOWN if tx.row(_DEAD, (task_id, task_id)) is None else State.DEAD


def message_state(tx: Tx, seq: int) -> State:
    """The state of a live message from the table it is in."""
    row = tx.row("SELECT started_at FROM reserved WHERE seq = ?", (seq,))
    if row is not None:
        return State.RESERVED if row[0] is None else State.RUNNING
    waiting = locate(tx, seq)
    if waiting is None or waiting.blocked or waiting.due_at is None or waiting.due_at <= tx.now:
        return State.QUEUED
    retries = tx.row("SELECT retries FROM message WHERE seq = ?", (seq,))[0]
    return waiting_state(
        due_at=seconds(waiting.due_at),
        visible_at=waiting.place.visible_at / 1_000_000,
        retries=retries,
    )
