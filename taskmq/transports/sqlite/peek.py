"""The highest priority a reserve would find now (seed §7): seeks on the heads, no lock."""

from __future__ import annotations

import json
from bisect import insort
from collections.abc import Sequence

from taskmq.policy.aging import Aging
from taskmq.policy.bands import Window
from taskmq.transports.base import QueueShare
from taskmq.transports.sqlite.arrivals import Arrivals
from taskmq.transports.sqlite.catalog import LaneSet
from taskmq.transports.sqlite.due import LOOKED_AT, bands
from taskmq.transports.sqlite.heads import band_heads, open_lanes, tops
from taskmq.transports.sqlite.rows import PLACE_COLUMNS, Place
from taskmq.transports.sqlite.tx import Tx

# How many rows of one band are passed over that expired or may no longer be yielded. A reserve or a
# sweep removes the expired ones; past this many the band is taken for empty until then.
PASSED_OVER = 256

_COUNTS = (
    "SELECT visible_at FROM (SELECT visible_at, yieldable, expires_at FROM ready "
    "WHERE lane = ? AND npri = ? ORDER BY visible_at, seq LIMIT ?) "
    "WHERE yieldable AND (expires_at IS NULL OR expires_at > ?) LIMIT 1"
)
_COUNTS_BUT = (
    "SELECT visible_at FROM (SELECT visible_at, seq, yieldable, expires_at FROM ready "
    "WHERE lane = ? AND npri = ? ORDER BY visible_at, seq LIMIT ?) "
    "WHERE yieldable AND (expires_at IS NULL OR expires_at > ?) "
    "AND seq NOT IN (SELECT value FROM json_each(?)) LIMIT 1"
)
_BELOW = "SELECT npri FROM ready WHERE lane = ? AND npri > ? AND npri <= ? ORDER BY npri LIMIT 1"
_DUE = (
    f"SELECT {PLACE_COLUMNS} FROM scheduled "  # noqa: S608
    "WHERE npri = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?"
)


def peek(tx: Tx, queues: Sequence[QueueShare], window: Window, aging: Aging | None) -> int | None:
    """Due messages count whether or not they were moved to ready; see `Transport.peek_max_priority`."""
    tx.refresh()
    lanes = open_lanes(tx, queues, with_token=True)
    if not lanes.lanes:
        return None
    arrivals = Arrivals(tx)
    due = []
    if tx.any_scheduled:
        due = _due(tx, {lane.id for lane in lanes.lanes}, window, aging, arrivals)
    but = arrivals.displaced
    if aging is None:
        ready = _best_ready(tx, lanes, window, but)
    else:
        ready = _best_aged(tx, lanes, window, aging, but)
    levels = [level for level, seq in due if seq not in but]
    return max(levels if ready is None else [ready, *levels], default=None)


def _best_ready(tx: Tx, lanes: LaneSet, window: Window, but: set[int]) -> int | None:
    # Nearly always the first look at the first lane is the answer.
    left = sorted((npri, lane) for lane, npri in tops(tx, lanes, window))
    while left:
        npri, lane = left.pop(0)
        if _first_that_counts(tx, lane, npri, but) is not None:
            return -npri
        below = tx.row(_BELOW, (lane, npri, -window.low))
        if below is not None:
            insort(left, (below[0], lane))
    return None


def _best_aged(tx: Tx, lanes: LaneSet, window: Window, aging: Aging, but: set[int]) -> int | None:
    levels = (
        aging.effective(-npri, visible_at / 1_000_000, tx.time)
        for lane in lanes.lanes
        for npri, _, _ in band_heads(tx, lane)
        if (visible_at := _first_that_counts(tx, lane.id, npri, but)) is not None
    )
    return max(filter(window.admits, levels), default=None)


def _first_that_counts(tx: Tx, lane: int, npri: int, but: set[int]) -> int | None:
    """The place in time of the first ready message that may make somebody yield."""
    if not but:
        row = tx.row(_COUNTS, (lane, npri, PASSED_OVER, tx.now))
    else:
        row = tx.row(_COUNTS_BUT, (lane, npri, PASSED_OVER, tx.now, json.dumps(sorted(but))))
    return None if row is None else int(row[0])


def _due(
    tx: Tx, lanes: set[int], window: Window, aging: Aging | None, arrivals: Arrivals
) -> list[tuple[int, int]]:
    """`(level, sequence)` of the due messages that would become claimable, as far as they matter."""
    found = []
    for npri, first in bands(tx):
        if first > tx.now:
            continue
        for row in tx.execute(_DUE, (npri, tx.now, LOOKED_AT)).fetchall():
            place = Place._make(row)
            if place.expires_at is not None and place.expires_at <= tx.now:
                continue
            # Asked before the lane is looked at: a key is shared over queues.
            if not arrivals.admits(place) or place.lane not in lanes or not place.yieldable:
                continue
            level = -npri
            if aging is not None:
                level = aging.effective(-npri, place.visible_at / 1_000_000, tx.time)
            if window.admits(level):
                found.append((level, place.seq))
                if aging is None and not place.keyed:
                    # Nobody takes its place, and whatever comes after it is no more urgent.
                    return found
    return found
