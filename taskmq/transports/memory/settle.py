"""Settling: what a worker says became of a delivery, with everything that follows, fenced by the token."""

from __future__ import annotations

import logging
from dataclasses import replace

from taskmq.codec.failures import failure_line
from taskmq.errors import EncodeError, TaskMQError
from taskmq.message import Delivery
from taskmq.policy import endings
from taskmq.policy.sizes import outcome_fault
from taskmq.policy.yielding import stays_yieldable
from taskmq.states import State
from taskmq.transports.base import Outcome, Verb
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.starting import hand_back
from taskmq.transports.memory.store import Store

log = logging.getLogger("taskmq.memory")


def settle_apart(store: Store, outcome: Outcome, now: float) -> bool:
    """Apply one outcome; one that cannot be applied ends as a failure, and the others are not affected.

    False when the lease was lost, and then nothing of it was applied.
    """
    try:
        return _settle(store, outcome, now)
    except Exception as exc:
        task_id = outcome.delivery.message.task_id
        log.exception("the outcome of %s cannot be stored, it ends as a failure", task_id)
        error = exc if isinstance(exc, TaskMQError) else EncodeError(failure_line(exc))
        entry = store.held(outcome.delivery)
        if entry is not None:
            # Its own ending without what follows: that may be what cannot be applied.
            message = replace(entry.message, follow=None)
            how = endings.end(message, State.FAILED, error, **store.ending(now))
            store.delete(entry, now)
            store.bury(entry, "unstorable", how.error, now)
            if how.result is not None:
                store.put_result(how.result)
        return True


def _settle(store: Store, outcome: Outcome, now: float) -> bool:
    entry = store.held(outcome.delivery)
    if entry is None:
        return False
    fault = outcome_fault(
        entry.message,
        result=outcome.result,
        then=outcome.then,
        body=outcome.body,
        priority=outcome.priority,
        delay=outcome.delay,
        limit=store.settings.max_body,
    )
    if fault is not None:
        # Checked before anything moves: this one ends as a failure, the others are not affected.
        how = endings.end(entry.message, State.FAILED, fault, **store.ending(now))
        outcome = replace(outcome, verb=Verb.FINISH, result=how.result, then=how.then)
    if outcome.verb is Verb.FINISH:
        store.delete(entry, now)
        _write(store, outcome, now)
    elif outcome.verb is Verb.REPORT:
        _write(store, outcome, now)
    elif outcome.verb is Verb.BURY:
        store.delete(entry, now)
        store.bury(entry, outcome.reason, outcome.error, now)
        _write(store, outcome, now)
    elif outcome.verb is Verb.RETRY:
        _write(store, outcome, now)
        _retry(store, entry, outcome, now)
    else:
        _write(store, outcome, now)
        _release(store, entry, outcome, now)
    return True


def yield_back(store: Store, delivery: Delivery, delay: float, now: float) -> bool:
    """Seed §3.3: not before `delay` seconds, in its old place, key and booked token in hand (P18)."""
    entry = store.held(delivery)
    if entry is None or entry.place is Place.RUNNING:
        return False
    entry.yields += 1
    if not stays_yieldable(entry.yields, store.settings.max_yields):
        entry.yieldable = False
    hand_back(store, entry, now, due_at=now + delay, keeps_key=True)
    return True


def _write(store: Store, outcome: Outcome, now: float) -> None:
    if outcome.result is not None:
        store.put_result(outcome.result)
    store.workflows.apply(store, outcome.then, now)


def _retry(store: Store, entry: Entry, outcome: Outcome, now: float) -> None:
    message = entry.message
    entry.message = replace(
        message,
        retries=message.retries + 1,
        priority=message.priority if outcome.priority is None else outcome.priority,
        body=message.body if outcome.body is None else outcome.body,
    )
    entry.booked = False
    entry.deliveries = 0
    entry.token = 0
    entry.worker = ""
    # A new turn in the order, by its own schedule. A message that is not due holds no key.
    later = outcome.delay > 0
    entry.visible_at = now + outcome.delay if later else store.stamp(now)
    entry.due_at = entry.visible_at if later else None
    store.waiting.free_key(entry, now)
    store.put_back(entry, now)


def _release(store: Store, entry: Entry, outcome: Outcome, now: float) -> None:
    message = entry.message
    if outcome.counted and entry.deliveries >= message.max_deliveries:
        how = endings.dead(message, entry.deliveries, **store.ending(now))
        if outcome.error:
            how = how._replace(error=outcome.error)
        store.end(entry, how, now, reason=outcome.reason or endings.CRASH_LOOP)
        return
    due_at = now + outcome.delay if outcome.delay > 0 else None
    hand_back(store, entry, now, due_at=due_at, counted=outcome.counted)
