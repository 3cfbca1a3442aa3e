"""What a worker holds: starting it, handing it back, keeping it. Each fenced by the token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from taskmq.message import Delivery
from taskmq.policy.yielding import stays_yieldable
from taskmq.transports.base import Started
from taskmq.transports.sqlite.endings import end, ended_instead
from taskmq.transports.sqlite.places import await_turn, free_key
from taskmq.transports.sqlite.rates import Rates
from taskmq.transports.sqlite.rows import PLACE_COLUMNS, Place
from taskmq.transports.sqlite.times import micros
from taskmq.transports.sqlite.tx import Tx

_HELD = f"SELECT {PLACE_COLUMNS}, started_at FROM reserved WHERE seq = ? AND token = ?"  # noqa: S608
DELETE_HELD = "DELETE FROM reserved WHERE seq = ? AND token = ?"


class Held(NamedTuple):
    """A delivery whose lease is still its own."""

    place: Place
    started: bool


def held(tx: Tx, delivery: Delivery) -> Held | None:
    """The row of a delivery, None once its lease was lost."""
    row = tx.row(_HELD, (delivery.seq, delivery.token))
    return None if row is None else Held(Place._make(row[:-1]), row[-1] is not None)


def start(tx: Tx, deliveries: Sequence[Delivery]) -> Started:
    """Mark reserved deliveries running; those no longer ours to start are refused."""
    rates = Rates(tx)
    # Whether a queue is paused is read from it.
    tx.refresh()
    started: list[Delivery] = []
    refused: list[Delivery] = []
    for delivery in deliveries:
        now_running = start_one(tx, delivery, rates)
        if now_running is None:
            refused.append(delivery)
        else:
            started.append(now_running)
    rates.save()
    return Started(tuple(started), tuple(refused))


def start_one(tx: Tx, delivery: Delivery, rates: Rates) -> Delivery | None:
    """From reserved to running: here the rate token is taken; revocation, expiry and a pause are met.

    The caller has made the catalog current.
    """
    found = held(tx, delivery)
    if found is None:
        return None
    if found.started:
        # The commit of an earlier start was not heard of; it is ours and it runs.
        return replace(delivery, started=True)
    message = delivery.message
    how = ended_instead(tx, message)
    if how is not None:
        tx.execute(DELETE_HELD, (delivery.seq, delivery.token))
        end(tx, delivery.seq, message, how)
        return None
    lane = tx.lane(found.place.lane)
    if tx.catalog.paused(lane.queue):
        hand_back(tx, delivery, found)
        return None
    if lane.rate_key is not None and message.rate is not None:
        if lane.booked:
            if not rates.start_booked(lane.rate_key):
                # Its lane opens again when the pace allows.
                hand_back(tx, delivery, found, keeps_key=True)
                return None
        elif (at := rates.take(lane.rate_key, message.rate.interval)) > tx.now:
            booked = tx.booked_lane(lane.id)
            hand_back(tx, delivery, found, due_at=at, lane=booked, keeps_key=True)
            return None
    tx.execute(
        "UPDATE reserved SET started_at = ? WHERE seq = ? AND token = ?",
        (tx.now, delivery.seq, delivery.token),
    )
    return replace(delivery, started=True)


def hand_back(
    tx: Tx,
    delivery: Delivery,
    found: Held,
    *,
    due_at: int | None = None,
    counted: bool = False,
    lane: int | None = None,
    keeps_key: bool = False,
) -> None:
    """Let a held message wait in its old place again; the delivery is taken back unless counted.

    Unless it keeps its concurrency key, one blocked by it that is more urgent goes first.
    """
    place = found.place
    if lane is None:
        # A token that was spent on a start is gone; one still booked is good for the next start.
        lane = home_lane(tx, place.seq) if found.started else place.lane
    deliveries = place.deliveries if counted else place.deliveries - 1
    tx.execute(DELETE_HELD, (delivery.seq, delivery.token))
    if not keeps_key:
        release_key(tx, delivery)
    put_back(tx, delivery, place._replace(lane=lane, deliveries=deliveries), due_at)


def put_back(tx: Tx, delivery: Delivery, place: Place, due_at: int | None) -> None:
    """Back into the queue, or to its end if it was revoked or expired while it was held."""
    how = ended_instead(tx, delivery.message)
    if how is not None:
        end(tx, place.seq, delivery.message, how)
    else:
        await_turn(tx, place, due_at)


def home_lane(tx: Tx, seq: int) -> int:
    """The lane a message was submitted to."""
    return int(tx.row("SELECT lane FROM message WHERE seq = ?", (seq,))[0])


def yield_back(tx: Tx, delivery: Delivery, delay: float) -> bool:
    """Seed §3.3: not before `delay` seconds, in its old place, key and booked token in hand (P13, P18)."""
    found = held(tx, delivery)
    if found is None or found.started:
        return False
    yields = found.place.yields + 1
    kept = found.place.yieldable and stays_yieldable(yields, tx.settings.max_yields)
    place = found.place._replace(yields=yields, yieldable=int(kept))
    due_at = tx.now + micros(delay) if delay > 0 else None
    hand_back(tx, delivery, Held(place, False), due_at=due_at, keeps_key=True)
    return True


def release_key(tx: Tx, delivery: Delivery) -> None:
    """Give up the concurrency key of a message that was held, so that the next in order has it."""
    key = delivery.message.concurrency
    if key is not None:
        free_key(tx, key.key, delivery.seq)


def extend(tx: Tx, deliveries: Sequence[Delivery], lease: float) -> tuple[Delivery, ...]:
    """Renew leases from now; those already lost."""
    length = micros(lease)
    return tuple(
        delivery
        for delivery in deliveries
        if not tx.execute(
            "UPDATE reserved SET lease_until = ?, lease = ? WHERE seq = ? AND token = ?",
            (tx.now + length, length, delivery.seq, delivery.token),
        ).rowcount
    )
