"""What is scheduled: moving it to ready once it is due, from the highest band down.

By hops over the bands that hold anything, at most one seek each; so neither a million future messages nor
a storm of due ones in a lower band stand before an urgent one.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence

from taskmq.failpoints import Failpoint, failpoint
from taskmq.transports.sqlite.places import await_turn
from taskmq.transports.sqlite.rates import gates
from taskmq.transports.sqlite.rows import PLACE_COLUMNS, Place
from taskmq.transports.sqlite.tx import Tx

log = logging.getLogger("taskmq.sqlite")

# Rows moved in one transaction: some 2 ms. The next turn comes at once for the rest.
PROMOTED_PER_TURN = 500
# How far into one band a look for certain lanes goes; what is due rarely stays, since any turn moves it.
LOOKED_AT = 500

# A row that cannot be moved is tried again after so long (microseconds).
_TRIED_AGAIN = 60_000_000

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
_REMOVE_ONE = "DELETE FROM scheduled WHERE npri = ? AND due_at = ? AND seq = ?"
_PUT_OFF = "UPDATE scheduled SET due_at = ? WHERE npri = ? AND due_at = ? AND seq = ?"
# What a row no other row agrees with raises. Not the faults of the file: those concern everybody.
_BAD_ROW = (sqlite3.IntegrityError, LookupError, TypeError, ValueError)


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
            for row in rows:
                _arrive(tx, Place._make(row[:-1]), row[-1])
        else:
            tx.execute(_MOVE, span)
            tx.execute(_REMOVE, span)
        failpoint(Failpoint.IN_PROMOTE)
        left -= len(rows)
        if left <= 0:
            tx.more = True
            return


def _arrive(tx: Tx, place: Place, due_at: int) -> None:
    """Move one row, by itself: what is wrong with it must not hold up the others."""
    where = (place.npri, due_at, place.seq)
    tx.execute("SAVEPOINT arrival")
    try:
        # One that came before it may have taken its key, and moved it to blocked with that.
        if tx.execute(_REMOVE_ONE, where).rowcount:
            await_turn(tx, place, None)
    except _BAD_ROW:
        tx.execute("ROLLBACK TO arrival")
        tx.execute(_PUT_OFF, (tx.now + _TRIED_AGAIN, *where))
        log.exception(
            "message %d cannot be made claimable and is put off; the others go on",
            place.seq,
            extra={"action": "bad-row"},
        )
    tx.execute("RELEASE arrival")


def next_due(tx: Tx, lanes: Sequence[int]) -> float | None:
    """When the next message of these lanes falls due or may start, in seconds; exact up to `LOOKED_AT`
    foreign ones."""
    ids = json.dumps(list(lanes))
    times = gates(tx, lanes)
    for npri, _ in bands(tx):
        # Past so many foreign ones the time of the next one is a safe bound: it is no later than ours.
        found = tx.row(_NEXT, (npri, LOOKED_AT, ids)) or tx.row(_BEYOND, (npri, LOOKED_AT))
        if found is not None:
            times.append(found[0])
    return min(times) / 1_000_000 if times else None
