"""The duties: taking back lost leases, and deleting what is past its time."""

from __future__ import annotations

from taskmq.coordination.base import Maintained
from taskmq.policy import endings
from taskmq.policy.endings import Lost, after_lost_lease, said_of_lost
from taskmq.policy.reaping import LeaseWatch
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.starting import hand_back
from taskmq.transports.memory.store import Store

# How long a chord that ended is remembered, so that a late member changes nothing.
_CHORD_KEPT = 86_400.0


class Maintenance:
    """One per transport: the watch remembers what it saw at its last look."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watch = LeaseWatch(store.settings.lease)

    def reap(self) -> Maintained:
        """Take back the leases that two looks found expired (reliability facts 11-12)."""
        store = self._store
        with store.at() as now:
            held = {(e.seq, e.token): e for e in store.entries.values() if e.place.held}
            monotonic = store.clock.monotonic()
            expired = self._watch.expired(
                [(*key, entry.lease_until, entry.lease) for key, entry in held.items()],
                now=now,
                monotonic=monotonic,
            )
            lost = self._watch.lost(expired, now=now, monotonic=monotonic)
            notes = tuple(self._take_back(held[key], now) for key in lost)
            return Maintained(done=len(lost), notes=notes)

    def sweep(self) -> Maintained:
        """Expired messages ended when this operation began; the rest is deleted here."""
        store = self._store
        with store.at() as now:
            done = 0
            for task_id, record in list(store.results.items()):
                if record.expires_at is not None and record.expires_at <= now:
                    del store.results[task_id]
                    done += 1
            kept = store.settings.dead_letter_expires
            for number, letter in list(store.dead.items()):
                if kept and letter.died_at + kept <= now:
                    del store.dead[number]
                    done += 1
            for task_id, (since, _) in list(store.revoked.items()):
                if since + store.settings.revocation_expires <= now:
                    del store.revoked[task_id]
                    done += 1
            store.waiting.rates.forget_old(now)
            return Maintained(done=done + store.workflows.sweep(now - _CHORD_KEPT))

    def _take_back(self, entry: Entry, now: float) -> str:
        store = self._store
        message = entry.message
        fate = after_lost_lease(
            started=entry.place is Place.RUNNING,
            ack=message.ack,
            deliveries=entry.deliveries,
            max_deliveries=message.max_deliveries,
        )
        note = said_of_lost(message.task_id, entry.worker, fate)
        if fate is Lost.FAILED:
            how = endings.lost_on_start(message, **store.ending(now))
            store.end(entry, how, now, reason=endings.WORKER_LOST)
        elif fate is Lost.DEAD:
            how = endings.dead(message, entry.deliveries, **store.ending(now))
            store.end(entry, how, now, reason=endings.CRASH_LOOP)
        else:
            hand_back(store, entry, now, counted=fate is Lost.REDELIVERED)
        return note
