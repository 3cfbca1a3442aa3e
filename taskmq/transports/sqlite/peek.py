"""The highest priority a reserve would find now (seed §7): seeks on the heads, no lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from taskmq.policy.aging import Aging
from taskmq.policy.bands import Window
from taskmq.transports.base import QueueShare
from taskmq.transports.sqlite.catalog import Lane
from taskmq.transports.sqlite.due import LOOKED_AT, bands
from taskmq.transports.sqlite.heads import band_heads, open_lanes
from taskmq.transports.sqlite.tx import Tx

# How many rows of one band are passed over that expired or may no longer be yielded. A reserve or a
# sweep removes the expired ones; past this many the band is taken for empty until then.
PASSED_OVER = 256

_COUNTS = (
    "SELECT visible_at FROM (SELECT visible_at, yieldable, expires_at FROM ready "
    "WHERE lane = ? AND npri = ? ORDER BY visible_at, seq LIMIT ?) "
    "WHERE yieldable AND (expires_at IS NULL OR expires_at > ?) LIMIT 1"
)
_DUE = (
    "SELECT lane, visible_at, yieldable, expires_at FROM scheduled "
    "WHERE npri = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?"
)


def peek(tx: Tx, queues: Sequence[QueueShare], window: Window, aging: Aging | None) -> int | None:
    """Due messages count whether or not they were moved to ready; see `Transport.peek_max_priority`."""
    lanes = open_lanes(tx, queues, with_token=True)
    if not lanes:
        return None
    best: int | None = None
    for lane in lanes:
        for effective in _levels(tx, lane, aging):
            if window.admits(effective) and (best is None or effective > best):
                best = effective
            if aging is None and best is not None and effective <= best:
                break
    for effective in _due(tx, {lane.id for lane in lanes}, aging):
        if window.admits(effective) and (best is None or effective > best):
            best = effective
    return best


def _levels(tx: Tx, lane: Lane, aging: Aging | None) -> Iterator[int]:
    for npri, _, _ in band_heads(tx, lane):
        row = tx.row(_COUNTS, (lane.id, npri, PASSED_OVER, tx.now))
        if row is not None:
            yield _effective(tx, npri, row[0], aging)


def _due(tx: Tx, lanes: set[int], aging: Aging | None) -> Iterator[int]:
    for npri, first in bands(tx):
        if first > tx.now:
            continue
        for lane, visible_at, yieldable, expires_at in tx.execute(
            _DUE, (npri, tx.now, LOOKED_AT)
        ).fetchall():
            if lane in lanes and yieldable and (expires_at is None or expires_at > tx.now):
                yield _effective(tx, npri, visible_at, aging)


def _effective(tx: Tx, npri: int, visible_at: int, aging: Aging | None) -> int:
    if aging is None:
        return -npri
    return aging.effective(-npri, visible_at / 1_000_000, tx.time)
