"""Where an unreserved message waits: ready, scheduled until its "not before", or blocked by its key."""

from __future__ import annotations

from typing import NamedTuple

from taskmq.transports.sqlite import keys
from taskmq.transports.sqlite.rows import PLACE_COLUMNS, Place
from taskmq.transports.sqlite.tx import Tx

INSERT_READY = (
    "INSERT INTO ready(lane, npri, visible_at, seq, deliveries, yields, yieldable, expires_at, keyed) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_SCHEDULED = (
    "INSERT INTO scheduled(npri, due_at, seq, lane, visible_at, deliveries, yields, yieldable, "
    "expires_at, keyed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
DELETE_READY = "DELETE FROM ready WHERE lane = ? AND npri = ? AND visible_at = ? AND seq = ?"
_INSERT_BLOCKED = (
    "INSERT INTO blocked(key, npri, visible_at, seq, due_at, lane, deliveries, yields, yieldable, "
    "expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_BLOCKED_COLUMNS = "seq, lane, npri, visible_at, deliveries, yields, yieldable, expires_at, 1"


class Waiting(NamedTuple):
    """A place that was taken out, with its "not before" and whether its key blocked it."""

    place: Place
    due_at: int | None
    blocked: bool


def await_turn(tx: Tx, place: Place, due_at: int | None) -> None:
    """Let a message wait where its times and its key say: the one way back into the queue."""
    if due_at is not None and due_at > tx.now:
        schedule(tx, place, due_at)
    elif place.keyed and not keys.holds(tx, place.seq):
        _arrive_keyed(tx, place)
    else:
        ready(tx, place)


def ready(tx: Tx, place: Place) -> None:
    """Claimable now."""
    tx.execute(
        INSERT_READY,
        (
            place.lane,
            place.npri,
            place.visible_at,
            place.seq,
            place.deliveries,
            place.yields,
            place.yieldable,
            place.expires_at,
            place.keyed,
        ),
    )


def schedule(tx: Tx, place: Place, due_at: int) -> None:
    """Not before `due_at`; the place stays what it is."""
    tx.execute(
        INSERT_SCHEDULED,
        (
            place.npri,
            due_at,
            place.seq,
            place.lane,
            place.visible_at,
            place.deliveries,
            place.yields,
            place.yieldable,
            place.expires_at,
            place.keyed,
        ),
    )


def _arrive_keyed(tx: Tx, place: Place) -> None:
    admitted, swapped = keys.admit(tx, place)
    if swapped is not None:
        out = take_out(tx, swapped)
        # A holder that waits nowhere is gone, and so is its hold on the key by now.
        if out is not None:
            _block(tx, out.place, out.due_at)
    if admitted:
        ready(tx, place)
    else:
        _block(tx, place, None)


def _block(tx: Tx, place: Place, due_at: int | None) -> None:
    key, _ = keys.key_of(tx, place.seq)
    tx.execute(
        _INSERT_BLOCKED,
        (
            key,
            place.npri,
            place.visible_at,
            place.seq,
            due_at,
            place.lane,
            place.deliveries,
            place.yields,
            place.yieldable,
            place.expires_at,
        ),
    )


def free_key(tx: Tx, key: str, seq: int) -> None:
    """Give up a concurrency key; the next blocked ones have it and become claimable."""
    if not keys.release(tx, key, seq):
        return
    while (heir := keys.next_heir(tx, key)) is not None:
        out = take_out(tx, heir)
        assert out is not None
        keys.hold(tx, key, out.place)
        if out.due_at is not None and out.due_at > tx.now:
            schedule(tx, out.place, out.due_at)
        else:
            ready(tx, out.place)


def locate(tx: Tx, seq: int) -> Waiting | None:
    """Where an unreserved message waits; None for one that is held or gone. Seeks only."""
    row = tx.row("SELECT lane, npri, visible_at, key FROM message WHERE seq = ?", (seq,))
    if row is None:
        return None
    lane, npri, visible_at, key = row
    # A rate-limited message waits in its own lane, or in that one's twin once it booked a token.
    for candidate in {lane, tx.booked_lane(lane)}:
        found = tx.row(
            f"SELECT {PLACE_COLUMNS} FROM ready "  # noqa: S608
            "WHERE lane = ? AND npri = ? AND visible_at = ? AND seq = ?",
            (candidate, npri, visible_at, seq),
        )
        if found is not None:
            return Waiting(Place._make(found), None, False)
    found = tx.row(f"SELECT {PLACE_COLUMNS}, due_at FROM scheduled WHERE seq = ?", (seq,))  # noqa: S608
    if found is not None:
        return Waiting(Place._make(found[:-1]), found[-1], False)
    if key is None:
        return None
    found = tx.row(
        f"SELECT {_BLOCKED_COLUMNS}, due_at FROM blocked "  # noqa: S608
        "WHERE key = ? AND npri = ? AND visible_at = ? AND seq = ?",
        (key, npri, visible_at, seq),
    )
    return None if found is None else Waiting(Place._make(found[:-1]), found[-1], True)


def take_out(tx: Tx, seq: int) -> Waiting | None:
    """Remove an unreserved message from where it waits; its row and its key stay."""
    waiting = locate(tx, seq)
    if waiting is None:
        return None
    place = waiting.place
    if waiting.blocked:
        tx.execute(
            "DELETE FROM blocked WHERE key = ? AND npri = ? AND visible_at = ? AND seq = ?",
            (keys.key_of(tx, seq)[0], place.npri, place.visible_at, seq),
        )
    elif waiting.due_at is not None:
        tx.execute(
            "DELETE FROM scheduled WHERE npri = ? AND due_at = ? AND seq = ?",
            (place.npri, waiting.due_at, seq),
        )
    else:
        tx.execute(DELETE_READY, (place.lane, place.npri, place.visible_at, seq))
    return waiting
