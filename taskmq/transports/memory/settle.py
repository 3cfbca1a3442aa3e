"""Settling: what a worker says became of a delivery, with everything that follows, fenced by the token."""

from __future__ import annotations

from dataclasses import replace

from taskmq.message import Delivery
from taskmq.policy import endings
from taskmq.policy.sizes import oversized
from taskmq.policy.yielding import stays_yieldable
from taskmq.states import State
from taskmq.transports.base import Outcome, Verb
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.starting import hand_back
from taskmq.transports.memory.store import Store


def settle(store: Store, outcome: Outcome, now: float) -> bool:
    """Apply one outcome whole; False when the lease was lost, and then nothing of it was applied."""
    entry = store.held(outcome.delivery)
    if entry is None:
        return False
    fault = oversized(
        entry.message,
        result=outcome.result,
        then=outcome.then,
        body=outcome.body,
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
