"""Retention: what expired ends, what is past its time goes, in small transactions; and the log's size."""

from __future__ import annotations

import logging
from collections.abc import Callable

from taskmq.coordination.base import Maintained
from taskmq.policy import endings
from taskmq.policy.limits import RATE_KEPT
from taskmq.transports.sqlite.consequences import apply_followers
from taskmq.transports.sqlite.endings import end
from taskmq.transports.sqlite.places import take_out
from taskmq.transports.sqlite.rows import M_COLUMNS, UNREADABLE
from taskmq.transports.sqlite.times import micros
from taskmq.transports.sqlite.tx import Engine, Tx

log = logging.getLogger("taskmq.sqlite")

# Rows of one kind in one transaction.
AT_ONCE = 200
#: Events kept; the oldest go first.
EVENTS_KEPT = 10_000
# A chord nobody finished is forgotten after this many seconds.
_CHORD_KEPT = 30 * 86_400.0
# Workers that have not reported for so long are gone.
_WORKER_KEPT = 86_400.0
# A log this long (pages of 4 KiB) means that a reader keeps it from being copied back.
_LONG_LOG = 16_384
# Free pages are what the next messages need, and all there is when the device is full: only what is beyond
# that (pages) is given back, so many at a time.
_MANY_FREE = 16_384
_GIVEN_BACK = 500

_EXPIRED = (
    "SELECT m.seq FROM message m WHERE m.expires_at <= ? "
    "AND NOT EXISTS(SELECT 1 FROM reserved r WHERE r.seq = m.seq) ORDER BY m.expires_at LIMIT ?"
)


def sweep(engine: Engine) -> Maintained:
    """One step of every kind; looks without a lock first, for mostly there is nothing."""
    done = 0
    more = False
    for step in (_end_expired, *_DELETIONS):
        if not engine.glance(lambda tx, step=step: step(tx, True)):  # type: ignore[misc]
            continue
        count = engine.write(lambda tx, step=step: step(tx, False))  # type: ignore[misc]
        done += count
        more = more or count >= AT_ONCE
    return Maintained(done=done, more=more)


def checkpoint(engine: Engine) -> Maintained:
    """Copy the log back, and give some pages to the file system where very many are free."""
    pages, copied = engine.store.checkpoint()
    if pages - copied > _LONG_LOG:
        log.warning(
            "the write-ahead log of %s holds %d pages that could not be copied back: a reader keeps "
            "an old snapshot open",
            engine.store.path,
            pages - copied,
            extra={"action": "long-log"},
        )
    free = engine.glance(lambda tx: tx.row("PRAGMA freelist_count")[0])
    if free > _MANY_FREE:
        engine.write(lambda tx: tx.execute(f"PRAGMA incremental_vacuum({_GIVEN_BACK})").fetchall())
    return Maintained(done=copied)


def _end_expired(tx: Tx, look: bool) -> int:
    limit = 1 if look else AT_ONCE
    seqs = [row[0] for row in tx.execute(_EXPIRED, (tx.now, limit)).fetchall()]
    if look:
        return len(seqs)
    return sum(_end_one(tx, seq) for seq in seqs)


def _end_one(tx: Tx, seq: int) -> bool:
    row = tx.row(f"SELECT {M_COLUMNS} FROM message m WHERE m.seq = ?", (seq,))  # noqa: S608
    try:
        message = tx.message(row)
    except UNREADABLE:
        # It must not stop the sweep; it stays for a version that can read it.
        log.exception(
            "message %d has expired and cannot be read; it is left as it is",
            seq,
            extra={"action": "bad-row"},
        )
        return False
    take_out(tx, seq)
    end(tx, seq, message, endings.expired(message, **tx.ending()))
    apply_followers(tx)
    return True


Step = Callable[[Tx, bool], int]


def _deletion(table: str, key: str, condition: str, before: Callable[[Tx], int | None]) -> Step:
    """A step that deletes the rows of a table whose `condition` compares to a time or number."""
    select = f"SELECT {key} FROM {table} WHERE {condition} LIMIT ?"  # noqa: S608
    delete = f"DELETE FROM {table} WHERE {key} IN ({select})"  # noqa: S608

    def step(tx: Tx, look: bool) -> int:
        limit = before(tx)
        if limit is None:
            return 0
        if look:
            return len(tx.execute(select, (limit, 1)).fetchall())
        return tx.execute(delete, (limit, AT_ONCE)).rowcount

    return step


def _now(tx: Tx) -> int:
    return tx.now


def _dead_before(tx: Tx) -> int | None:
    kept = tx.settings.dead_letter_expires
    return tx.now - micros(kept) if kept else None


def _chords_ended_before(tx: Tx) -> int | None:
    kept = tx.settings.result_expires
    return tx.now - micros(kept) if kept else None


def _first_event_kept(tx: Tx) -> int:
    newest = tx.row("SELECT max(number) FROM event")[0] or 0
    return int(newest) - EVENTS_KEPT


def _ago(seconds: float) -> Callable[[Tx], int]:
    return lambda tx: tx.now - micros(seconds)


_DELETIONS: tuple[Step, ...] = (
    _deletion("result", "id", "expires_at <= ?", _now),
    _deletion("dead", "number", "died_at <= ?", _dead_before),
    _deletion("revoked", "task_id", "expires_at <= ?", _now),
    _deletion("command", "number", "expires_at <= ?", _now),
    _deletion("reply", "number", "expires_at <= ?", _now),
    _deletion("worker", "name", "seen_at <= ?", _ago(_WORKER_KEPT)),
    _deletion("event", "number", "number <= ?", _first_event_kept),
    _deletion("chord", "key", "ended AND changed_at <= ?", _chords_ended_before),
    _deletion("chord", "key", "NOT ended AND changed_at <= ?", _ago(_CHORD_KEPT)),
    _deletion("chord_part", "rowid", "? AND key NOT IN (SELECT key FROM chord)", lambda tx: 1),
    _deletion(
        "rate", "key", "max(next_at, closed_until, last_start + interval) <= ?", _ago(RATE_KEPT)
    ),
)
