"""Settling: what a worker says became of a delivery, with everything that follows, fenced by the token."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from taskmq.codec.failures import failure_line
from taskmq.errors import EncodeError, MessageError, TaskMQError
from taskmq.failpoints import Failpoint, failpoint
from taskmq.message import Delivery
from taskmq.policy import endings
from taskmq.policy.following import NOTHING
from taskmq.policy.sizes import outcome_fault
from taskmq.states import State
from taskmq.transports.base import Outcome, Verb
from taskmq.transports.sqlite.consequences import apply_followers
from taskmq.transports.sqlite.endings import DELETE_MESSAGE, bury, delete_message, end
from taskmq.transports.sqlite.faults import concerns_the_store
from taskmq.transports.sqlite.leases import (
    DELETE_HELD,
    Held,
    hand_back,
    held,
    home_lane,
    put_back,
    release_key,
)
from taskmq.transports.sqlite.records import put_record, put_records
from taskmq.transports.sqlite.submit import stamp
from taskmq.transports.sqlite.times import micros
from taskmq.transports.sqlite.tx import Tx

log = logging.getLogger("taskmq.sqlite")


class LeaseLost(Exception):
    """One of several that were to be finished together is not ours any more: the transaction is void."""


def settle_together(tx: Tx, outcomes: Sequence[Outcome]) -> list[Delivery]:
    """As `settle`, with the plain finishes in one go: under load that is nearly all there is.

    Raises `LeaseLost` when one of those was lost: then the transaction has to be taken back, and
    `settle_apart` finds out which.
    """
    if len(outcomes) < 2:
        return settle(tx, outcomes)
    limit = tx.settings.max_body
    plain: list[Outcome] = []
    others: list[Outcome] = []
    for outcome in outcomes:
        (plain if _is_plain(outcome, limit) else others).append(outcome)
    # What is reported of a run comes before its ending.
    lost = settle(tx, others) if others else []
    held = [(o.delivery.seq, o.delivery.token) for o in plain]
    if tx.executemany(DELETE_HELD, held).rowcount != len(held):
        raise LeaseLost
    tx.executemany(DELETE_MESSAGE, [(seq,) for seq, _ in held])
    put_records(tx, [o.result for o in plain if o.result is not None])
    if not others:
        failpoint(Failpoint.IN_SETTLE)
    return lost


def _is_plain(outcome: Outcome, limit: int) -> bool:
    """Whether it is an ending with a result that may be stored, and nothing follows."""
    result = outcome.result
    return (
        outcome.verb is Verb.FINISH
        and outcome.then is NOTHING
        and outcome.delivery.message.concurrency is None
        and (result is None or result.body is None or len(result.body) <= limit)
        and outcome.body is None
        and outcome.priority is None
        and outcome.delay == 0.0
    )


def settle(tx: Tx, outcomes: Sequence[Outcome]) -> list[Delivery]:
    """Apply outcomes and what follows them; the deliveries whose lease was lost."""
    lost = [outcome.delivery for outcome in outcomes if not _settle(tx, outcome)]
    apply_followers(tx)
    if outcomes:
        failpoint(Failpoint.IN_SETTLE)
    return lost


def settle_apart(tx: Tx, outcomes: Sequence[Outcome]) -> list[Delivery]:
    """As `settle`, each outcome by itself: one that cannot be stored ends as a failure that says why."""
    lost = []
    for outcome in outcomes:
        try:
            lost += _apart(tx, outcome)
        except Exception as exc:
            if concerns_the_store(exc):
                raise
            lost += _fail_apart(tx, outcome, exc)
    return lost


def _fail_apart(tx: Tx, outcome: Outcome, fault: Exception) -> list[Delivery]:
    """End as a failure what cannot be stored; without what follows where that is what cannot."""
    log.warning(
        "the outcome of %s cannot be stored, it ends as a failure: %s",
        outcome.delivery.message.task_id,
        fault,
        exc_info=None if isinstance(fault, MessageError) else fault,
        extra={"action": "unstorable"},
    )
    try:
        return _apart(tx, _failed_instead(tx, outcome, fault))
    except Exception as exc:
        if concerns_the_store(exc):
            raise
    bare = Outcome(
        delivery=outcome.delivery,
        verb=Verb.BURY,
        reason="unstorable",
        error=failure_line(fault),
    )
    try:
        return _apart(tx, bare)
    except Exception as exc:
        if concerns_the_store(exc):
            raise
        # Nothing can be said of it: its lease ends, and another worker tries.
        log.exception("task %s cannot be settled", outcome.delivery.message.task_id)
        return []


def _apart(tx: Tx, outcome: Outcome) -> list[Delivery]:
    tx.execute("SAVEPOINT outcome")
    try:
        return settle(tx, (outcome,))
    except BaseException:
        tx.execute("ROLLBACK TO outcome")
        tx.followers.clear()
        # What was created inside is gone.
        tx.catalog.clear()
        raise
    finally:
        tx.execute("RELEASE outcome")


def _failed_instead(tx: Tx, outcome: Outcome, fault: Exception) -> Outcome:
    error = fault if isinstance(fault, TaskMQError) else EncodeError(failure_line(fault))
    how = endings.end(outcome.delivery.message, State.FAILED, error, **tx.ending())
    return replace(outcome, verb=Verb.FINISH, result=how.result, then=how.then, body=None)


def _settle(tx: Tx, outcome: Outcome) -> bool:
    delivery = outcome.delivery
    limit = tx.settings.max_body
    if not _is_plain(outcome, limit) and (fault := _fault(outcome, limit)):
        outcome = _failed_instead(tx, outcome, fault)
    verb = outcome.verb
    if verb is Verb.FINISH:
        if not tx.execute(DELETE_HELD, (delivery.seq, delivery.token)).rowcount:
            return False
        key = delivery.message.concurrency
        delete_message(tx, delivery.seq, None if key is None else key.key)
        _write(tx, outcome)
        return True
    found = held(tx, delivery)
    if found is None:
        return False
    _write(tx, outcome)
    if verb is Verb.BURY:
        _bury(tx, outcome, found)
    elif verb is Verb.RETRY:
        _retry(tx, outcome, found)
    elif verb is Verb.RELEASE:
        _release(tx, outcome, found)
    return True


def _fault(outcome: Outcome, limit: int) -> TaskMQError | None:
    return outcome_fault(
        outcome.delivery.message,
        result=outcome.result,
        then=outcome.then,
        body=outcome.body,
        priority=outcome.priority,
        delay=outcome.delay,
        limit=limit,
    )


def _write(tx: Tx, outcome: Outcome) -> None:
    if outcome.result is not None:
        put_record(tx, outcome.result)
    if outcome.then:
        tx.followers.append(outcome.then)


def _bury(tx: Tx, outcome: Outcome, found: Held) -> None:
    delivery = outcome.delivery
    tx.execute(DELETE_HELD, (delivery.seq, delivery.token))
    bury(
        tx,
        delivery.seq,
        reason=outcome.reason,
        error=outcome.error,
        deliveries=found.place.deliveries,
        yields=found.place.yields,
    )
    key = delivery.message.concurrency
    delete_message(tx, delivery.seq, None if key is None else key.key)


def _retry(tx: Tx, outcome: Outcome, found: Held) -> None:
    """A new place in the order, by its own schedule; deliveries start from 0 (DESIGN §2)."""
    delivery = outcome.delivery
    message = replace(
        delivery.message,
        retries=delivery.message.retries + 1,
        priority=delivery.message.priority if outcome.priority is None else outcome.priority,
        body=delivery.message.body if outcome.body is None else outcome.body,
    )
    due_at = tx.now + micros(outcome.delay) if outcome.delay > 0 else None
    visible_at = stamp(tx) if due_at is None else due_at
    tx.execute(DELETE_HELD, (delivery.seq, delivery.token))
    # The body is written only where it changed: it may be pages long.
    tx.execute(
        "UPDATE message SET retries = ?, npri = ?, visible_at = ? WHERE seq = ?",
        (message.retries, -message.priority, visible_at, delivery.seq),
    )
    if outcome.body is not None:
        tx.execute("UPDATE message SET body = ? WHERE seq = ?", (outcome.body, delivery.seq))
    release_key(tx, delivery)
    place = found.place._replace(
        lane=home_lane(tx, delivery.seq),
        npri=-message.priority,
        visible_at=visible_at,
        deliveries=0,
    )
    put_back(tx, replace(delivery, message=message), place, due_at)


def _release(tx: Tx, outcome: Outcome, found: Held) -> None:
    delivery = outcome.delivery
    message = delivery.message
    if outcome.counted and found.place.deliveries >= message.max_deliveries:
        how = endings.dead(message, found.place.deliveries, **tx.ending())
        if outcome.error:
            how = how._replace(error=outcome.error)
        tx.execute(DELETE_HELD, (delivery.seq, delivery.token))
        end(
            tx,
            delivery.seq,
            message,
            how,
            reason=outcome.reason or endings.CRASH_LOOP,
            deliveries=found.place.deliveries,
            yields=found.place.yields,
        )
        return
    due_at = tx.now + micros(outcome.delay) if outcome.delay > 0 else None
    hand_back(tx, delivery, found, due_at=due_at, counted=outcome.counted)
