"""Endings that no worker settles, and deleting a message whole (the words are `policy.endings`)."""

from __future__ import annotations

from taskmq.message import Message
from taskmq.policy.endings import Ended, expired, revoked
from taskmq.transports.sqlite.places import free_key
from taskmq.transports.sqlite.records import put_record
from taskmq.transports.sqlite.tx import Tx

_BURY = (
    "INSERT INTO dead(died_at, reason, error, deliveries, yields, message_id, task_id, task, lane, queue, "
    "npri, expires_at, max_deliveries, ack, retries, rate_interval, key, key_limit, follow, body, meta) "
    "SELECT ?, ?, ?, ?, ?, m.message_id, m.task_id, m.task, m.lane, l.queue, m.npri, m.expires_at, "
    "m.max_deliveries, m.ack, m.retries, m.rate_interval, m.key, m.key_limit, m.follow, m.body, m.meta "
    "FROM message m CROSS JOIN lane l ON l.id = m.lane WHERE m.seq = ?"
)


DELETE_MESSAGE = "DELETE FROM message WHERE seq = ?"


def delete_message(tx: Tx, seq: int, key: str | None) -> None:
    """Forget a message that was taken out of where it was; its key goes to the next."""
    tx.execute(DELETE_MESSAGE, (seq,))
    if key is not None:
        free_key(tx, key, seq)


def bury(tx: Tx, seq: int, *, reason: str, error: str, deliveries: int, yields: int) -> None:
    """Copy a message to the dead letters; the caller deletes it afterwards."""
    tx.execute(_BURY, (tx.now, reason, error, deliveries, yields, seq))


def end(
    tx: Tx,
    seq: int,
    message: Message,
    how: Ended,
    *,
    reason: str = "",
    deliveries: int = 0,
    yields: int = 0,
) -> None:
    """End a message that was taken out; with a `reason` it becomes a dead letter."""
    if reason:
        bury(tx, seq, reason=reason, error=how.error, deliveries=deliveries, yields=yields)
    key = message.concurrency
    delete_message(tx, seq, None if key is None else key.key)
    if how.result is not None:
        put_record(tx, how.result)
    if how.then:
        tx.followers.append(how.then)


def ended_instead(tx: Tx, message: Message) -> Ended | None:
    """How a message ends that was revoked or has expired, None for one that may go on (I7, I8)."""
    reason = tx.revocation(message.task_id)
    if reason is not None:
        return revoked(message, reason, **tx.ending())
    if message.expires_at is not None and message.expires_at <= tx.time:
        return expired(message, **tx.ending())
    return None
