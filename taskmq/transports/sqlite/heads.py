"""The first message of every lane a worker may take from: the one look behind reserve and peek."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from taskmq.policy.aging import Aging
from taskmq.policy.bands import Head, Window, top_band
from taskmq.transports.base import QueueShare
from taskmq.transports.sqlite import rates
from taskmq.transports.sqlite.catalog import Lane, LaneSet
from taskmq.transports.sqlite.tx import Tx

# One seek a lane, whatever is stored: 13 us for ten queues at any depth (measured).
_TOPS = (
    "SELECT j.value, (SELECT npri FROM ready WHERE lane = j.value AND npri BETWEEN ? AND ? "
    "ORDER BY npri LIMIT 1) FROM json_each(?) j"
)
_TOP = "SELECT npri FROM ready WHERE lane = ? AND npri BETWEEN ? AND ? ORDER BY npri LIMIT 1"
_NEXT_BAND = (
    "SELECT npri, visible_at, seq FROM ready WHERE lane = ? AND npri > ? "
    "ORDER BY npri, visible_at, seq LIMIT 1"
)
_BEFORE_ALL = -1000


class Level(NamedTuple):
    """The most urgent level there is: by queue, the `(lane, npri)` its messages are stored under.

    `rows` are the first of its only source, where the look brought them along.
    """

    effective: int
    sources: dict[str, list[tuple[int, int]]]
    rows: list[Any] | None = None


def open_lanes(tx: Tx, queues: Sequence[QueueShare], *, with_token: bool = False) -> LaneSet:
    """The lanes of these queues that are neither paused nor closed by a rate limit; `tx` is refreshed.

    With `with_token` a rate-limited lane counts only while it has a token: what a peek may promise.
    """
    found = tx.catalog.lanes_of(tuple(queues))
    if not found.rate_keys:
        return found
    return found.only(rates.open_now(tx, with_token=with_token))


def tops(tx: Tx, lanes: LaneSet, window: Window) -> list[tuple[int, int]]:
    """`(lane, npri)` of the highest band in the window of each lane that has one."""
    low, high = -window.high, -window.low
    if len(lanes.lanes) == 1:
        (lane,) = lanes.lanes
        row = tx.row(_TOP, (lane.id, low, high))
        return [] if row is None else [(lane.id, row[0])]
    rows = tx.execute(_TOPS, (low, high, lanes.ids)).fetchall()
    return [row for row in rows if row[1] is not None]


def band_heads(tx: Tx, lane: Lane) -> Iterator[tuple[int, int, int]]:
    """`(npri, visible_at, seq)` of the first message of every band of a lane: at most 19 seeks."""
    npri = _BEFORE_ALL
    while (row := tx.row(_NEXT_BAND, (lane.id, npri))) is not None:
        npri = row[0]
        yield row


def top_level(tx: Tx, lanes: LaneSet, window: Window, aging: Aging | None) -> Level | None:
    """The most urgent level in the window over all lanes alike (P2), None when there is nothing."""
    if aging is not None:
        return _aged_level(tx, lanes, window, aging)
    found = tops(tx, lanes, window)
    if not found:
        return None
    best = min(npri for _, npri in found)
    sources: dict[str, list[tuple[int, int]]] = {}
    for pair in found:
        if pair[1] == best:
            sources.setdefault(tx.catalog.lane(pair[0]).queue, []).append(pair)
    return Level(-best, sources)


def _aged_level(tx: Tx, lanes: LaneSet, window: Window, aging: Aging) -> Level | None:
    """Under aging the first of each band has waited longest; any of them may be the most urgent (P4)."""
    stored: dict[tuple[int, int], int] = {}
    heads: list[Head] = []
    for lane in lanes.lanes:
        for npri, visible_at, seq in band_heads(tx, lane):
            effective = aging.effective(-npri, visible_at / 1_000_000, tx.time)
            heads.append(Head(lane.queue, lane.id, effective, visible_at, seq))
            stored[lane.id, seq] = npri
    band = top_band(heads, window)
    if not band:
        return None
    sources: dict[str, list[tuple[int, int]]] = {}
    for head in band:
        sources.setdefault(head.queue, []).append((head.lane, stored[head.lane, head.seq]))
    return Level(band[0].effective, sources)
