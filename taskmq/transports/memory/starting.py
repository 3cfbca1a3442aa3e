"""From reserved to running, fenced: here the rate token is taken; revocation, expiry and a pause are met."""

from __future__ import annotations

from taskmq.message import Delivery
from taskmq.policy import endings
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.store import Store


def start_held(store: Store, delivery: Delivery, now: float) -> Delivery | None:
    """Mark a held delivery running; None when it is no longer this worker's to start."""
    entry = store.held(delivery)
    if entry is None:
        return None
    if entry.place is Place.RUNNING:
        return entry.delivery()
    message = entry.message
    if message.expires_at is not None and message.expires_at <= now:
        store.end(entry, endings.expired(message, **store.ending(now)), now)
        return None
    if store.paused.get(message.queue):
        hand_back(store, entry, now)
        return None
    at = store.waiting.rates.take(entry, now)
    if at > now:
        # One that had its booking is due already: its lane opens when the pace allows.
        due_at = None if entry.booked else at
        hand_back(store, entry, now, due_at=due_at, booked=True, keeps_key=True)
        return None
    entry.place = Place.RUNNING
    return entry.delivery()


def hand_back(
    store: Store,
    entry: Entry,
    now: float,
    *,
    due_at: float | None = None,
    booked: bool = False,
    counted: bool = False,
    keeps_key: bool = False,
) -> None:
    """Let a held message wait in its old place again; the delivery is taken back unless counted.

    Unless it keeps its concurrency key, one blocked by it that is more urgent goes first.
    """
    # A token that was spent on a start is gone; one still booked stays good for the next start.
    entry.booked = booked or (entry.booked and entry.place is not Place.RUNNING)
    if not counted:
        entry.deliveries -= 1
    entry.token = 0
    entry.worker = ""
    entry.due_at = due_at
    if not keeps_key:
        store.waiting.free_key(entry, now)
    store.put_back(entry, now)
