"""The claim order recomputed from what is stored: what `taskmq peek` prints. Changes nothing.

Follows one-slot reserves step by step: due messages counted as moved, rotation counted on from the stored
counters, what expired, was revoked or has no rate token left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any

from taskmq.message import Message
from taskmq.policy.bands import Head, top_band
from taskmq.transports.base import ALL_BANDS, QueueShare
from taskmq.transports.operators import Peeked
from taskmq.transports.sqlite.arrivals import Arrivals
from taskmq.transports.sqlite.catalog import Lane
from taskmq.transports.sqlite.due import bands
from taskmq.transports.sqlite.heads import open_lanes
from taskmq.transports.sqlite.rotation import Rotation
from taskmq.transports.sqlite.rows import M_COLUMNS, PLACE_COLUMNS, Place
from taskmq.transports.sqlite.tx import Tx

_PAGE = 64
_READY = (
    f"SELECT {PLACE_COLUMNS} FROM ready WHERE lane = ? AND (npri, visible_at, seq) > (?, ?, ?) "  # noqa: S608
    "ORDER BY npri, visible_at, seq LIMIT ?"
)
_DUE = (
    f"SELECT {PLACE_COLUMNS} FROM scheduled WHERE npri = ? AND due_at <= ? "  # noqa: S608
    "ORDER BY due_at, seq"
)
_FIRST = (-1000, 0, 0)


def peek(tx: Tx, queues: Sequence[QueueShare], limit: int) -> list[Peeked]:
    """The next `limit` messages of these queues, in order."""
    tx.refresh()
    lanes = list(open_lanes(tx, queues, with_token=True).lanes)
    arrivals = Arrivals(tx)
    due = _due_places(tx, arrivals)
    lines = {lane.id: _Line(_places(tx, lane, due.get(lane.id, []))) for lane in lanes}
    rotation = Rotation(tx)
    found: list[Peeked] = []
    while len(found) < limit:
        heads = [
            Head(lane.queue, lane.id, -head.npri, head.visible_at, head.seq)
            for lane in lanes
            if (head := lines[lane.id].head) is not None
        ]
        band = top_band(heads, ALL_BANDS)
        if not band:
            break
        present = {head.queue for head in band}
        # Looked at before the rotation moves on: what is skipped is charged to nobody.
        skipped = [head for head in band if _skip(tx, lines[head.lane], arrivals)]
        if skipped:
            continue
        (picked,) = rotation.pick(queues, present, 1)
        chosen = next(head for head in band if head.queue == picked)
        found.append(_peeked(tx, lines[chosen.lane].take()))
        spent = next(lane.rate_key for lane in lanes if lane.id == chosen.lane)
        if spent is not None:
            # It takes the token; the others of its limit, in whatever queue, would be set aside.
            lanes = [lane for lane in lanes if lane.rate_key != spent]
    return found


class _Line:
    """The places of one lane, in order, read page by page."""

    def __init__(self, places: Iterator[Place]) -> None:
        self._places = places
        self.head: Place | None = next(places, None)

    def take(self) -> Place:
        taken = self.head
        assert taken is not None
        self.head = next(self._places, None)
        return taken


def _due_places(tx: Tx, arrivals: Arrivals) -> dict[int, list[Place]]:
    due: dict[int, list[Place]] = {}
    for npri, first in bands(tx):
        if first <= tx.now:
            for row in tx.execute(_DUE, (npri, tx.now)).fetchall():
                place = Place._make(row)
                if arrivals.admits(place):
                    due.setdefault(place.lane, []).append(place)
    return due


def _order(place: Place) -> tuple[int, int, int]:
    return place.npri, place.visible_at, place.seq


def _places(tx: Tx, lane: Lane, due: list[Place]) -> Iterator[Place]:
    return merge(_ready_places(tx, lane.id), sorted(due, key=_order), key=_order)


def _ready_places(tx: Tx, lane: int) -> Iterator[Place]:
    last: tuple[int, int, int] = _FIRST
    while True:
        rows: list[Any] = tx.execute(_READY, (lane, *last, _PAGE)).fetchall()
        for row in rows:
            place = Place._make(row)
            yield place
            last = _order(place)
        if len(rows) < _PAGE:
            return


def _skip(tx: Tx, line: _Line, arrivals: Arrivals) -> bool:
    """Pass over the head of a line if a reserve would end or block it instead of taking it."""
    place = line.head
    assert place is not None
    gone = place.expires_at is not None and place.expires_at <= tx.now
    gone = gone or place.seq in arrivals.displaced
    if not gone:
        message = _message(tx, place)
        gone = place.deliveries >= message.max_deliveries
        gone = gone or tx.revocation(message.task_id) is not None
    if gone:
        line.take()
    return gone


def _message(tx: Tx, place: Place) -> Message:
    row = tx.row(f"SELECT {M_COLUMNS} FROM message m WHERE m.seq = ?", (place.seq,))  # noqa: S608
    return tx.message(row)


def _peeked(tx: Tx, place: Place) -> Peeked:
    message = _message(tx, place)
    return Peeked(
        message=message,
        effective=message.priority,
        visible_at=place.visible_at / 1_000_000,
        seq=place.seq,
        deliveries=place.deliveries,
        yields=place.yields,
        yieldable=bool(place.yieldable),
    )
