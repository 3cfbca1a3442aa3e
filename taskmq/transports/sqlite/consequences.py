"""What follows an ending: messages to submit, results to write, chord members to count."""

from __future__ import annotations

from dataclasses import replace

from taskmq.failpoints import Failpoint, failpoint
from taskmq.message import Message
from taskmq.policy import endings
from taskmq.policy.following import ChordFailure, ChordPart, Consequence
from taskmq.policy.sizes import too_large
from taskmq.states import State
from taskmq.transports.sqlite.records import put_record, put_records
from taskmq.transports.sqlite.rows import encode
from taskmq.transports.sqlite.submit import submit_following
from taskmq.transports.sqlite.tx import Tx


def apply_followers(tx: Tx) -> None:
    """Carry out all that the endings of this transaction bring about, and what those bring about."""
    while tx.followers:
        _apply(tx, tx.followers.pop(0))


def _apply(tx: Tx, then: Consequence) -> None:
    if then.submits:
        _submit(tx, then.submits)
    put_records(tx, then.results)
    for move in then.chords:
        if isinstance(move, ChordPart):
            _count(tx, move)
        else:
            _fail(tx, move)


def _submit(tx: Tx, messages: tuple[Message, ...]) -> None:
    submit_following(tx, [encode(message) for message in messages])


def _open_chord(tx: Tx, key: str, size: int) -> bool:
    """Make the chord's row if there is none; whether the chord still waits for members."""
    tx.execute(
        "INSERT INTO chord(key, size, changed_at) VALUES (?, ?, ?) ON CONFLICT(key) DO NOTHING",
        (key, size, tx.now),
    )
    return not tx.row("SELECT ended FROM chord WHERE key = ?", (key,))[0]


def _end_chord(tx: Tx, key: str) -> None:
    tx.execute("UPDATE chord SET ended = 1, changed_at = ? WHERE key = ?", (tx.now, key))
    tx.execute("DELETE FROM chord_part WHERE key = ?", (key,))


def _count(tx: Tx, move: ChordPart) -> None:
    if not _open_chord(tx, move.key, move.size):
        return
    added = tx.execute(
        "INSERT INTO chord_part(key, idx, part) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (move.key, move.index, move.part),
    ).rowcount
    if not added:
        return
    tx.execute(
        "UPDATE chord SET counted = counted + 1, changed_at = ? WHERE key = ?", (tx.now, move.key)
    )
    if tx.row("SELECT counted FROM chord WHERE key = ?", (move.key,))[0] < move.size:
        return
    rows = tx.execute(
        "SELECT part FROM chord_part WHERE key = ? ORDER BY idx", (move.key,)
    ).fetchall()
    _end_chord(tx, move.key)
    failpoint(Failpoint.IN_CHORD)
    parts = b",".join(bytes(row[0]) for row in rows)
    body = replace(move.then, body=move.prefix + parts + move.suffix)
    fault = too_large(body.body, tx.settings.max_body, f"the body of chord {move.key}")
    if fault is None:
        _submit(tx, (body,))
        return
    # Its results do not fit into one message: the body cannot run, and says so.
    how = endings.end(body, State.FAILED, fault, **tx.ending())
    if how.result is not None:
        put_record(tx, how.result)
    if how.then:
        tx.followers.append(how.then)


def _fail(tx: Tx, move: ChordFailure) -> None:
    if not _open_chord(tx, move.key, move.size):
        return
    _end_chord(tx, move.key)
    tx.followers.append(Consequence(submits=move.submits, results=move.results))
