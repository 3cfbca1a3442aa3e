"""Counts by queue and band: index scans, O(n), on a snapshot that holds up no writer."""

from __future__ import annotations

from collections.abc import Sequence

from taskmq.transports.operators import Depth
from taskmq.transports.sqlite.times import seconds
from taskmq.transports.sqlite.tx import Tx

# Each gives lane, npri, count, and the oldest place where one of them can be claimed.
_READY = "SELECT lane, npri, count(*), min(visible_at) FROM ready GROUP BY lane, npri"
_DUE = (
    "SELECT lane, npri, count(*), min(visible_at) FROM scheduled WHERE due_at <= ? "
    "GROUP BY lane, npri"
)
_SCHEDULED = "SELECT lane, npri, count(*), NULL FROM scheduled WHERE due_at > ? GROUP BY lane, npri"
_RESERVED = (
    "SELECT lane, npri, count(*), NULL FROM reserved WHERE started_at IS NULL GROUP BY lane, npri"
)
_RUNNING = (
    "SELECT lane, npri, count(*), NULL FROM reserved WHERE started_at IS NOT NULL "
    "GROUP BY lane, npri"
)
_BLOCKED = "SELECT lane, npri, count(*), NULL FROM blocked GROUP BY lane, npri"


def depth(tx: Tx, queues: Sequence[str] | None) -> list[Depth]:
    """Highest band first within a queue, queues by name. What is due counts as ready."""
    found: dict[tuple[str, int], Depth] = {}
    for place, sql, parameters in (
        ("ready", _READY, ()),
        ("ready", _DUE, (tx.now,)),
        ("scheduled", _SCHEDULED, (tx.now,)),
        ("reserved", _RESERVED, ()),
        ("running", _RUNNING, ()),
        ("blocked", _BLOCKED, ()),
    ):
        for lane, npri, count, oldest in tx.execute(sql, parameters).fetchall():
            queue = tx.names_of(lane)[0]
            if queues is None or queue in queues:
                _add(found, queue, npri, place, count, seconds(oldest))
    return [found[key] for key in sorted(found)]


def _add(
    found: dict[tuple[str, int], Depth],
    queue: str,
    npri: int,
    place: str,
    count: int,
    oldest: float | None,
) -> None:
    known = found.get((queue, npri)) or Depth(queue, -npri)
    if oldest is not None:
        known = known._replace(oldest_at=min(oldest, known.oldest_at or oldest))
    found[queue, npri] = known._replace(**{place: getattr(known, place) + count})
