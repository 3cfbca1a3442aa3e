"""What is scheduled: moving it to ready once it is due, from the highest band down.

By hops over the bands that hold anything, at most one seek each; so neither a million future messages nor
a storm of due ones in a lower band stand before an urgent one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from taskmq.transports.sqlite.places import await_turn
from taskmq.transports.sqlite.rows import PLACE_COLUMNS, Place
from taskmq.transports.sqlite.tx import Tx

# Rows moved in one transaction: some 2 ms. The next turn comes at once for the rest.
PROMOTED_PER_TURN = 500
# How far into one band a look for certain lanes goes; what is due rarely stays, since any turn moves it.
LOOKED_AT = 500

_FIRST = -1000
_KEYED = Place._fields.index("keyed")
_BAND = "SELECT npri, due_at FROM scheduled WHERE npri > ? ORDER BY npri, due_at LIMIT 1"
_DUE = (
    f"SELECT {PLACE_COLUMNS}, due_at FROM scheduled "  # noqa: S608
    "WHERE npri = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?"
)
_NEXT = (
    "SELECT due_at FROM (SELECT due_at, lane FROM scheduled WHERE npri = ? ORDER BY due_at, seq LIMIT ?) "
    "WHERE lane IN (SELECT value FROM json_each(?)) LIMIT 1"
)
_BEYOND = "SELECT due_at FROM scheduled WHERE npri = ? ORDER BY due_at, seq LIMIT 1 OFFSET ?"
_RANGE = "npri = ? AND (due_at, seq) <= (?, ?)"
_MOVE = (
    "INSERT INTO ready(lane, npri, visible_at, seq, deliveries, yields, yieldable, expires_at, keyed) "  # noqa: S608
    "SELECT lane, npri, visible_at, seq, deliveries, yields, yieldable, expires_at, keyed "
    f"FROM scheduled WHERE {_RANGE}"
)
_REMOVE = f"DELETE FROM scheduled WHERE {_RANGE}"  # noqa: S608


def bands(tx: Tx) -> Iterator[tuple[int, int]]:
    """`(npri, first due_at)` of every band that has scheduled messages, the most urgent first."""
    npri = _FIRST
    while (found := tx.row(_BAND, (npri,))) is not None:
        npri = found[0]
        yield found


def any_due(tx: Tx) -> bool:
    """Whether a promotion would move anything."""
    return any(due_at <= tx.now for _, due_at in bands(tx))


def promote(tx: Tx) -> None:
    """Make due messages claimable, at most `PROMOTED_PER_TURN`; `tx.more` when some are left."""
    left = PROMOTED_PER_TURN
    for npri, first in bands(tx):
        if first > tx.now:
            continue
        rows = tx.execute(_DUE, (npri, tx.now, left)).fetchall()
        last = rows[-1]
        span = (npri, last[-1], last[0])
        if any(row[_KEYED] for row in rows):
            # Those with a concurrency key arrive one by one: it decides where each goes.
            tx.execute(_REMOVE, span)
            for row in rows:
                await_turn(tx, Place._make(row[:-1]), None)
        else:
            tx.execute(_MOVE, span)
            tx.execute(_REMOVE, span)
        left -= len(rows)
        if left <= 0:
            tx.more = True
            return


def next_due(tx: Tx, lanes: Sequence[int]) -> float | None:
    """When the next message of these lanes falls due, in seconds; exact up to `LOOKED_AT` foreign ones."""
    ids = json.dumps(list(lanes))
    times = []
    for npri, _ in bands(tx):
        # Past so many foreign ones the time of the next one is a safe bound: it is no later than ours.
        found = tx.row(_NEXT, (npri, LOOKED_AT, ids)) or tx.row(_BEYOND, (npri, LOOKED_AT))
        if found is not None:
            times.append(found[0])
    return min(times) / 1_000_000 if times else None
