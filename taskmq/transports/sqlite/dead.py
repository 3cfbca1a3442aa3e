"""Dead letters: read, replayed, dropped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from taskmq.message import DeadLetter, Message
from taskmq.policy.endings import replayed
from taskmq.transports.sqlite.consequences import apply_followers
from taskmq.transports.sqlite.rows import MESSAGE_COLUMNS, encode
from taskmq.transports.sqlite.submit import submit_following
from taskmq.transports.sqlite.tx import Engine, Tx

# Letters replayed in one transaction.
_REPLAYED_AT_ONCE = 200

_COLUMNS = f"number, reason, error, died_at, deliveries, yields, {MESSAGE_COLUMNS}"
_ALL = f"SELECT {_COLUMNS} FROM dead WHERE number > ? ORDER BY number LIMIT ?"  # noqa: S608
_OF_QUEUE = (
    f"SELECT {_COLUMNS} FROM dead WHERE queue = (SELECT id FROM queue WHERE name = ?) "  # noqa: S608
    "AND number > ? ORDER BY number LIMIT ?"
)
_BY_NUMBER = f"SELECT {_COLUMNS} FROM dead WHERE number = ?"  # noqa: S608
_OF_TASK = (
    f"SELECT {_COLUMNS} FROM dead WHERE message_id = ? AND task_id IS NULL "  # noqa: S608
    f"UNION ALL SELECT {_COLUMNS} FROM dead WHERE task_id = ? ORDER BY number DESC"
)


def _letter(tx: Tx, row: Sequence[Any]) -> DeadLetter:
    number, reason, error, died_at, deliveries, yields = row[:6]
    return DeadLetter(
        number=number,
        message=tx.message(row[6:]),
        reason=reason,
        error=error,
        died_at=died_at / 1_000_000,
        deliveries=deliveries,
        yields=yields,
    )


def letters(tx: Tx, queue: str | None, after: int, limit: int) -> list[DeadLetter]:
    """By number, oldest first, from above `after`."""
    if queue is None:
        rows = tx.execute(_ALL, (after, limit)).fetchall()
    else:
        rows = tx.execute(_OF_QUEUE, (queue, after, limit)).fetchall()
    return [_letter(tx, row) for row in rows]


def letters_of(tx: Tx, task_id: str) -> list[DeadLetter]:
    """Those of one task, newest first."""
    return [_letter(tx, row) for row in tx.execute(_OF_TASK, (task_id, task_id)).fetchall()]


def letter(tx: Tx, key: str) -> DeadLetter | None:
    """By number, or the newest of a task_id. A task_id of digits only is found when no number is."""
    if key.isascii() and key.isdigit() and len(key) < 19:
        row = tx.row(_BY_NUMBER, (int(key),))
        if row is not None:
            return _letter(tx, row)
    found = letters_of(tx, key)
    return found[0] if found else None


def replay(engine: Engine, numbers: Sequence[int], priority: int | None) -> list[Message]:
    """Queue letters again; those that are gone are skipped. Some hundred in one transaction."""
    queued: list[Message] = []
    for start in range(0, len(numbers), _REPLAYED_AT_ONCE):
        chunk = numbers[start : start + _REPLAYED_AT_ONCE]
        queued += engine.write(lambda tx, chunk=chunk: _replay(tx, chunk, priority))  # type: ignore[misc]
    return queued


def _replay(tx: Tx, numbers: Sequence[int], priority: int | None) -> list[Message]:
    messages = []
    for number in dict.fromkeys(numbers):
        row = tx.row(_BY_NUMBER, (number,))
        if row is not None:
            letter = _letter(tx, row).message
            messages.append(replayed(letter, now=tx.time, priority=priority))
            tx.execute("DELETE FROM dead WHERE number = ?", (number,))
    # As what follows an ending: the failure that is on record for the task gives way.
    submit_following(tx, [encode(message) for message in messages])
    apply_followers(tx)
    return messages


def drop(tx: Tx, numbers: Sequence[int]) -> int:
    """Delete letters for good; how many there were."""
    return tx.execute(
        "DELETE FROM dead WHERE number IN (SELECT value FROM json_each(?))",
        (json.dumps(list(numbers)),),
    ).rowcount
