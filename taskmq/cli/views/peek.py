"""`taskmq peek`: the next messages in the order in which free slots take them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taskmq.cli.text import duration, table
from taskmq.transports.operators import Peeked


def lines(peeked: Sequence[Peeked], now: float, columns: int | None = None) -> list[str]:
    """A numbered table; `SEQ` and the waiting time are what the order can be recomputed from."""
    if not peeked:
        return ["nothing can be claimed now"]
    headers = ["#", "PRIORITY", "QUEUE", "TASK", "ID", "WAITS", "SEQ"]
    rows = [
        [
            number,
            _priority(entry),
            entry.message.queue,
            entry.message.task,
            entry.message.task_id,
            duration(now - entry.visible_at),
            entry.seq,
        ]
        for number, entry in enumerate(peeked, 1)
    ]
    below = [4]
    notes = [", ".join(_notes(entry)) for entry in peeked]
    if any(notes):
        headers.append("NOTES")
        rows = [[*row, note] for row, note in zip(rows, notes, strict=True)]
        below.append(7)
    return table(
        headers,
        rows,
        align=">><<<>><"[: len(headers)],
        columns=columns,
        elastic=(3,),
        below=below,
    )


def _priority(entry: Peeked) -> str:
    own = entry.message.priority
    # Aging raises what a reserve compares, never what is stored.
    return f"P{own}" if entry.effective == own else f"P{own} as P{entry.effective}"


def _notes(entry: Peeked) -> list[str]:
    notes = []
    if entry.message.retries:
        notes.append(f"retry {entry.message.retries}")
    if entry.deliveries:
        notes.append(f"delivered {entry.deliveries} of {entry.message.max_deliveries}")
    if entry.yields:
        notes.append(f"yielded {entry.yields}" + ("" if entry.yieldable else ", no more"))
    return notes


def as_json(peeked: Sequence[Peeked], now: float) -> list[dict[str, Any]]:
    """The same for programs: the sort key (effective, visible_at, seq) is in every entry."""
    return [
        {
            "position": number,
            "task_id": entry.message.task_id,
            "task": entry.message.task,
            "queue": entry.message.queue,
            "priority": entry.message.priority,
            "effective": entry.effective,
            "visible_at": entry.visible_at,
            "seq": entry.seq,
            "waits": max(0.0, now - entry.visible_at),
            "retries": entry.message.retries,
            "deliveries": entry.deliveries,
            "yields": entry.yields,
            "yieldable": entry.yieldable,
        }
        for number, entry in enumerate(peeked, 1)
    ]
