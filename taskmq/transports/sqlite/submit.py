"""Storing new messages: producers' and those that follow an ending.

Idempotent by message_id: one that is live, buried, or finished is known already. What finished leaves
only its result, found where the task_id is the message_id (natively always; a task_id that is reused says
nothing about the message).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from taskmq.transports.sqlite.endings import end, ended_instead
from taskmq.transports.sqlite.places import INSERT_READY, await_turn, schedule
from taskmq.transports.sqlite.rates import adopt_intervals
from taskmq.transports.sqlite.rows import ENCODED_COLUMNS, Encoded, Place
from taskmq.transports.sqlite.tx import Tx

_INSERT = (
    f"INSERT INTO message(seq, lane, visible_at, enqueued_at, {ENCODED_COLUMNS}) "  # noqa: S608
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Sequence and stamp of the newest live message; is it known; is there any revocation. The casts: a stamp
# that a stranger made no number must not stop every submit.
_LOOK = (
    "SELECT n.seq, CAST(n.enqueued_at AS INTEGER), "
    "EXISTS(SELECT 1 FROM message WHERE message_id = ?) "
    "OR EXISTS(SELECT 1 FROM dead WHERE message_id = ?) "
    "OR EXISTS(SELECT 1 FROM result WHERE task_id = ? AND final), "
    "EXISTS(SELECT 1 FROM revoked) "
    "FROM (SELECT 1) LEFT JOIN (SELECT seq, enqueued_at FROM message ORDER BY seq DESC LIMIT 1) n"
)
_NEWEST = "SELECT seq, CAST(enqueued_at AS INTEGER) FROM message ORDER BY seq DESC LIMIT 1"
_KNOWN = (
    "SELECT j.value FROM json_each(?) j WHERE "
    "EXISTS(SELECT 1 FROM message WHERE message_id = j.value) "
    "OR EXISTS(SELECT 1 FROM dead WHERE message_id = j.value) "
    "OR EXISTS(SELECT 1 FROM result WHERE task_id = j.value AND final)"
)
_LIVE = (
    "SELECT j.value FROM json_each(?) j "
    "WHERE EXISTS(SELECT 1 FROM message WHERE message_id = j.value)"
)


def submit(tx: Tx, encoded: Sequence[Encoded]) -> None:
    """Store what a producer sent; what is known already is left as it is."""
    if len(encoded) == 1:
        one = encoded[0]
        known_by = (one.message.message_id,) * 3
        seq, stamp, known, revocations = tx.row(_LOOK, known_by)
        if not known:
            _insert(tx, one, (seq or 0) + 1, max(tx.now, stamp or 0), look=bool(revocations))
        return
    ids = json.dumps([one.message.message_id for one in encoded])
    _insert_new(tx, encoded, {row[0] for row in tx.execute(_KNOWN, (ids,)).fetchall()})


def submit_following(tx: Tx, encoded: Sequence[Encoded]) -> None:
    """Store what follows an ending, in the transaction that settles it.

    Only a live message counts as known: a step that was ended with its failed predecessor runs after all
    when that is replayed, and its old result gives way.
    """
    ids = json.dumps([one.message.message_id for one in encoded])
    live = {row[0] for row in tx.execute(_LIVE, (ids,)).fetchall()}
    tx.executemany(
        "DELETE FROM result WHERE task_id = ?",
        [(one.message.task_id,) for one in encoded if one.message.message_id not in live],
    )
    _insert_new(tx, encoded, live)


def stamp(tx: Tx) -> int:
    """The time of something that arrives now: a clock that steps back does not reorder (DESIGN §4)."""
    newest = tx.row(_NEWEST)
    return tx.now if newest is None else max(tx.now, newest[1])


def _insert_new(tx: Tx, encoded: Sequence[Encoded], known: set[str]) -> None:
    newest = tx.row(_NEWEST)
    seq, latest = (0, 0) if newest is None else newest
    at = max(tx.now, latest)
    messages: list[tuple[Any, ...]] = []
    plain: list[tuple[Any, ...]] = []
    special: list[tuple[Encoded, Place]] = []
    for one in encoded:
        if one.message.message_id in known:
            continue
        known.add(one.message.message_id)
        seq += 1
        place, row = _row(tx, one, seq, at)
        messages.append(row)
        if tx.any_revoked or one.eta is not None or place.keyed or one.expires_at is not None:
            special.append((one, place))
        else:
            plain.append((place.lane, place.npri, place.visible_at, seq, 0, 0, 1, None, 0))
    tx.executemany(_INSERT, messages)
    adopt_intervals(tx, (one.message.rate for one in encoded))
    tx.executemany(INSERT_READY, plain)
    for one, place in special:
        _place(tx, one, place, look=tx.any_revoked)


def _insert(tx: Tx, one: Encoded, seq: int, at: int, *, look: bool) -> None:
    place, row = _row(tx, one, seq, at)
    tx.execute(_INSERT, row)
    adopt_intervals(tx, (one.message.rate,))
    _place(tx, one, place, look=look)


def _row(tx: Tx, one: Encoded, seq: int, at: int) -> tuple[Place, tuple[Any, ...]]:
    message = one.message
    rate = message.rate
    lane = tx.catalog.lane_id(tx.connection, message.queue, None if rate is None else rate.key)
    later = one.eta is not None and one.eta > tx.now
    visible_at = one.eta if later and one.eta is not None else at
    keyed = int(message.concurrency is not None)
    place = Place(seq, lane, one.npri, visible_at, 0, 0, 1, one.expires_at, keyed)
    return place, (seq, lane, visible_at, at, *one.columns)


def _place(tx: Tx, one: Encoded, place: Place, *, look: bool) -> None:
    if look or one.expires_at is not None:
        how = ended_instead(tx, one.message)
        if how is not None:
            end(tx, place.seq, one.message, how)
            return
    if one.eta is not None and one.eta > tx.now:
        schedule(tx, place, one.eta)
    else:
        await_turn(tx, place, None)
