"""The first message of every lane a worker may take from: the one look behind reserve and peek."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from taskmq.policy.aging import Aging
from taskmq.policy.bands import Head, Window
from taskmq.transports.base import QueueShare
from taskmq.transports.sqlite import rates
from taskmq.transports.sqlite.catalog import Lane
from taskmq.transports.sqlite.tx import Tx

# One seek a lane, whatever is stored: 13 us for ten queues at any depth (measured).
_TOPS = (
    "SELECT j.value, (SELECT npri FROM ready WHERE lane = j.value AND npri BETWEEN ?2 AND ?3 "
    "ORDER BY npri LIMIT 1) FROM json_each(?1) j"
)
_TOP = "SELECT npri FROM ready WHERE lane = ? AND npri BETWEEN ? AND ? ORDER BY npri LIMIT 1"
_NEXT_BAND = (
    "SELECT npri, visible_at, seq FROM ready WHERE lane = ? AND npri > ? "
    "ORDER BY npri, visible_at, seq LIMIT 1"
)
_BEFORE_ALL = -1000


def open_lanes(tx: Tx, queues: Sequence[QueueShare], *, with_token: bool = False) -> list[Lane]:
    """The lanes of these queues that are neither paused nor closed by a rate limit.

    With `with_token` a rate-limited lane counts only while it has a token: what a peek may promise.
    """
    catalog = tx.catalog
    catalog.refresh(tx.connection)
    lanes = [
        lane
        for share in queues
        if not catalog.paused(share.name)
        for lane in catalog.lanes(share.name)
    ]
    keys = {lane.rate_key for lane in lanes if lane.rate_key is not None}
    if not keys:
        return lanes
    allowed = rates.open_keys(tx, keys, with_token=with_token)
    return [lane for lane in lanes if lane.rate_key is None or lane.rate_key in allowed]


def tops(tx: Tx, lanes: Sequence[Lane], window: Window) -> Iterator[tuple[Lane, int]]:
    """`(lane, npri)` of the highest band in the window of each lane that has one."""
    low, high = -window.high, -window.low
    if len(lanes) == 1:
        row = tx.row(_TOP, (lanes[0].id, low, high))
        if row is not None:
            yield lanes[0], row[0]
        return
    ids = json.dumps([lane.id for lane in lanes])
    rows = tx.execute(_TOPS, (ids, low, high)).fetchall()
    for lane, row in zip(lanes, rows, strict=True):
        if row[1] is not None:
            yield lane, row[1]


def band_heads(tx: Tx, lane: Lane) -> Iterator[tuple[int, int, int]]:
    """`(npri, visible_at, seq)` of the first message of every band of a lane: at most 19 seeks."""
    npri = _BEFORE_ALL
    while (row := tx.row(_NEXT_BAND, (lane.id, npri))) is not None:
        npri = row[0]
        yield row


def heads(
    tx: Tx, lanes: Sequence[Lane], window: Window, aging: Aging | None
) -> Iterable[tuple[Head, int]]:
    """Each head with its band's npri. Without aging only the highest band of a lane can matter."""
    if aging is None:
        for lane, npri in tops(tx, lanes, window):
            # Inside a band place is looked at when rows are fetched; here only the band counts.
            yield Head(lane.queue, lane.id, -npri, 0, 0), npri
        return
    for lane in lanes:
        for npri, visible_at, seq in band_heads(tx, lane):
            effective = aging.effective(-npri, visible_at / 1_000_000, tx.time)
            yield Head(lane.queue, lane.id, effective, visible_at, seq), npri
