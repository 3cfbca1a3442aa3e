"""Purging a queue: whatever no worker holds ends as revoked, in small transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from taskmq.policy.endings import purged
from taskmq.transports.sqlite.consequences import apply_followers
from taskmq.transports.sqlite.endings import end
from taskmq.transports.sqlite.places import take_out
from taskmq.transports.sqlite.rates import Rates
from taskmq.transports.sqlite.rows import M_COLUMNS
from taskmq.transports.sqlite.tx import Engine, Tx

_AT_ONCE = 500
# Rows of other queues passed over in one transaction while looking for ours.
_SCANNED = 2000


class _Step(NamedTuple):
    """How many went, and whether there may be more."""

    deleted: int
    more: bool


def purge(engine: Engine, queue: str) -> int:
    """End the messages of a queue that are ready, scheduled or blocked; how many."""
    total = 0
    for step in (_ready(queue), _scheduled(queue), _blocked(queue)):
        while True:
            done = engine.write(step)
            total += done.deleted
            if not done.more:
                break
    engine.write(lambda tx: _forget_bookings(tx, queue))
    return total


def _forget_bookings(tx: Tx, queue: str) -> None:
    """Of rate limits that were in no other queue: whoever comes next need not wait for those who went."""
    tx.refresh()
    rates = Rates(tx)
    for key in {lane.rate_key for lane in tx.catalog.lanes(queue) if lane.rate_key is not None}:
        if tx.catalog.queues_of(key) == {queue}:
            rates.empty(key)
    rates.save()


def _end(tx: Tx, seqs: list[int]) -> None:
    for seq in seqs:
        # Freeing a key makes the next of it ready, so one of these may have moved meanwhile.
        row = tx.row(f"SELECT {M_COLUMNS} FROM message m WHERE m.seq = ?", (seq,))  # noqa: S608
        message = tx.message(row)
        take_out(tx, seq)
        end(tx, seq, message, purged(message, **tx.ending()))
    apply_followers(tx)


def _lanes(tx: Tx, queue: str) -> list[int]:
    tx.refresh()
    return [lane.id for lane in tx.catalog.lanes(queue)]


def _ready(queue: str) -> Callable[[Tx], _Step]:
    def step(tx: Tx) -> _Step:
        seqs: list[int] = []
        for lane in _lanes(tx, queue):
            rows = tx.execute(
                "SELECT seq FROM ready WHERE lane = ? LIMIT ?", (lane, _AT_ONCE - len(seqs))
            ).fetchall()
            seqs += [row[0] for row in rows]
        _end(tx, seqs)
        return _Step(len(seqs), len(seqs) == _AT_ONCE)

    return step


def _scheduled(queue: str) -> Callable[[Tx], _Step]:
    last = (-1000, 0, 0)

    def step(tx: Tx) -> _Step:
        nonlocal last
        lanes = set(_lanes(tx, queue))
        rows = tx.execute(
            "SELECT npri, due_at, seq, lane FROM scheduled WHERE (npri, due_at, seq) > (?, ?, ?) "
            "ORDER BY npri, due_at, seq LIMIT ?",
            (*last, _SCANNED),
        ).fetchall()
        seqs = [row[2] for row in rows if row[3] in lanes]
        _end(tx, seqs)
        if rows:
            last = rows[-1][:3]
        return _Step(len(seqs), len(rows) == _SCANNED)

    return step


def _blocked(queue: str) -> Callable[[Tx], _Step]:
    def step(tx: Tx) -> _Step:
        # After the ready ones, whose keys let some of these become ready: those go with them.
        lanes = _lanes(tx, queue)
        seqs: list[int] = []
        for lane in lanes:
            for table in ("blocked", "ready"):
                rows = tx.execute(
                    f"SELECT seq FROM {table} WHERE lane = ? LIMIT ?",  # noqa: S608
                    (lane, _AT_ONCE - len(seqs)),
                ).fetchall()
                seqs += [row[0] for row in rows]
        _end(tx, seqs)
        return _Step(len(seqs), bool(seqs))

    return step
