"""Concurrency keys: who holds one, who gives way, who is next (policy.limits carried out).

A holder is a due message that is ready, reserved, running or yielded; the row itself is the lock, so
a crash frees it with the message.
"""

from __future__ import annotations

from taskmq.policy.limits import Holder
from taskmq.policy.limits import admit as decide
from taskmq.transports.sqlite.rows import Place
from taskmq.transports.sqlite.tx import Tx


def key_of(tx: Tx, seq: int) -> tuple[str, int]:
    """The key and the limit a message was submitted with."""
    key, limit = tx.row("SELECT key, key_limit FROM message WHERE seq = ?", (seq,))
    return key, limit


def holds(tx: Tx, seq: int) -> bool:
    """Whether a message has its key already (it was yielded, or handed back)."""
    return (
        tx.row(
            "SELECT 1 FROM message m CROSS JOIN holder h ON h.key = m.key AND h.seq = m.seq "
            "WHERE m.seq = ?",
            (seq,),
        )
        is not None
    )


def holders(tx: Tx, key: str) -> list[Holder]:
    """Who has a key."""
    rows = tx.execute(
        "SELECT h.seq, h.npri, h.visible_at, EXISTS(SELECT 1 FROM reserved r WHERE r.seq = h.seq) "
        "FROM holder h WHERE h.key = ?",
        (key,),
    ).fetchall()
    return [Holder(seq, (npri, visible_at, seq), not held) for seq, npri, visible_at, held in rows]


def admit(tx: Tx, place: Place) -> tuple[bool, int | None]:
    """Let a due message take its key: whether it did, and whose place it took."""
    key, limit = key_of(tx, place.seq)
    sort_key = (place.npri, place.visible_at, place.seq)
    admitted, swapped = decide(sort_key, holders(tx, key), limit)
    if swapped is not None:
        tx.execute("DELETE FROM holder WHERE key = ? AND seq = ?", (key, swapped))
    if admitted:
        hold(tx, key, place)
    return admitted, swapped


def hold(tx: Tx, key: str, place: Place) -> None:
    """Give the key to a message."""
    tx.execute(
        "INSERT INTO holder(key, seq, npri, visible_at) VALUES (?, ?, ?, ?)",
        (key, place.seq, place.npri, place.visible_at),
    )


def release(tx: Tx, key: str, seq: int) -> bool:
    """Take the key from a message; False when it did not hold it."""
    return tx.execute("DELETE FROM holder WHERE key = ? AND seq = ?", (key, seq)).rowcount > 0


def next_heir(tx: Tx, key: str) -> int | None:
    """The blocked message that may have the key now, if any."""
    row = tx.row(
        "SELECT b.seq, m.key_limit, (SELECT count(*) FROM holder h WHERE h.key = b.key) "
        "FROM blocked b CROSS JOIN message m ON m.seq = b.seq "
        "WHERE b.key = ? ORDER BY b.npri, b.visible_at, b.seq LIMIT 1",
        (key,),
    )
    if row is None or row[2] >= row[1]:
        return None
    return int(row[0])
