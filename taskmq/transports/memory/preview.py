"""The claim order without claiming: what `taskmq peek` prints and what `why` counts."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import islice

from taskmq.policy.rotation import Share, rotate
from taskmq.transports.base import QueueShare
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.store import Store

# `why` counts no further than this.
AHEAD_CAP = 10_000


def claim_order(store: Store, queues: Sequence[QueueShare], limit: int, now: float) -> list[Entry]:
    """The next `limit` entries as one-slot reserves would take them now; changes nothing."""
    waiting = {q.name: _claimable(store, q.name, limit, now) for q in queues}
    counters = {q.name: store.counters.get(q.name, 0) for q in queues}
    spent: set[str] = set()
    order: list[Entry] = []
    while len(order) < limit:
        for entries in waiting.values():
            # A rate limit has one token now: its next message would be set aside.
            while entries and entries[-1].rate_key in spent:
                entries.pop()
        left = {name: entries for name, entries in waiting.items() if entries}
        if not left:
            break
        top = max(entries[-1].message.priority for entries in left.values())
        shares = [
            Share(q.name, q.weight, counters[q.name])
            for q in queues
            if q.name in left and left[q.name][-1].message.priority == top
        ]
        picks, moved = rotate(shares, 1)
        counters.update(moved)
        entry = left[picks[0]].pop()
        if entry.rate_key is not None:
            spent.add(entry.rate_key)
        order.append(entry)
    return order


def _claimable(store: Store, queue: str, limit: int, now: float) -> list[Entry]:
    """What one queue offers, the first last."""
    if store.paused.get(queue):
        return []
    offered: list[Entry] = []
    limited = 0
    for lane in store.waiting.lanes(queue):
        if lane.rate is None:
            offered.extend(lane.entries())
        elif store.waiting.rates.has_token(lane, now):
            # One token, one message; another queue's may be the one that gets it.
            offered.extend(islice(lane.entries(), 1))
            limited += 1
    return heapq.nsmallest(limit + limited, offered, key=lambda e: e.sort_key)[::-1]


def ahead_of(store: Store, entry: Entry) -> int:
    """How many claimable messages sort before this one in its queue or above it in other queues."""
    queue, band = entry.message.queue, entry.message.priority
    count = 0
    for other in store.entries.values():
        if other.place is not Place.READY:
            continue
        if other.message.queue == queue:
            count += other.sort_key < entry.sort_key
        elif not store.paused.get(other.message.queue):
            count += other.message.priority > band
        if count > AHEAD_CAP:
            break
    return count
