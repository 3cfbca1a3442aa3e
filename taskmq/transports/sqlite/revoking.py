"""Revoking: unstarted messages end now, running ones are marked, unknown ids are remembered (I8)."""

from __future__ import annotations

from collections.abc import Sequence

from taskmq.policy.endings import revoked
from taskmq.states import State
from taskmq.transports.operators import Revoked
from taskmq.transports.sqlite.consequences import apply_followers
from taskmq.transports.sqlite.endings import end
from taskmq.transports.sqlite.places import take_out
from taskmq.transports.sqlite.results import LIVE_MESSAGES, message_state, state_of
from taskmq.transports.sqlite.rows import M_COLUMNS
from taskmq.transports.sqlite.times import micros
from taskmq.transports.sqlite.tx import Engine, Tx

_REVOKED_AT_ONCE = 200


def revoke(engine: Engine, task_ids: Sequence[str], reason: str) -> list[Revoked]:
    """Some hundred ids in one transaction."""
    done: list[Revoked] = []
    ids = list(dict.fromkeys(task_ids))
    for start in range(0, len(ids), _REVOKED_AT_ONCE):
        chunk = ids[start : start + _REVOKED_AT_ONCE]
        done += engine.write(lambda tx, chunk=chunk: _revoke(tx, chunk, reason))  # type: ignore[misc]
    return done


def _revoke(tx: Tx, task_ids: Sequence[str], reason: str) -> list[Revoked]:
    done = [_revoke_one(tx, task_id, reason) for task_id in task_ids]
    apply_followers(tx)
    return done


def _revoke_one(tx: Tx, task_id: str, reason: str) -> Revoked:
    was = state_of(tx, task_id)
    if was.final:
        return Revoked(task_id, was, False)
    tx.execute(
        "INSERT INTO revoked(task_id, reason, expires_at) VALUES (?, ?, ?) ON CONFLICT(task_id) "
        "DO UPDATE SET reason = excluded.reason, expires_at = excluded.expires_at",
        (task_id, reason, tx.now + micros(tx.settings.revocation_expires)),
    )
    ended = False
    for (seq,) in tx.execute(LIVE_MESSAGES, (task_id, task_id)).fetchall():
        ended |= _end_unstarted(tx, seq, reason)
    return Revoked(task_id, was, ended and was is not State.RUNNING)


def _end_unstarted(tx: Tx, seq: int, reason: str) -> bool:
    if message_state(tx, seq) is State.RUNNING:
        return False
    if take_out(tx, seq) is None:
        # Held unstarted: its worker finds the lease lost when it would start it.
        tx.execute("DELETE FROM reserved WHERE seq = ?", (seq,))
    row = tx.row(f"SELECT {M_COLUMNS} FROM message m WHERE m.seq = ?", (seq,))  # noqa: S608
    message = tx.message(row)
    end(tx, seq, message, revoked(message, reason, **tx.ending()))
    return True


def is_revoked(tx: Tx, task_id: str) -> bool:
    """Whether a revocation is stored that has not passed its time."""
    return (
        tx.row("SELECT 1 FROM revoked WHERE task_id = ? AND expires_at > ?", (task_id, tx.now))
        is not None
    )
