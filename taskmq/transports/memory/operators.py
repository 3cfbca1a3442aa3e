"""What a person asks of a memory transport, and what a person does to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from taskmq.message import DeadLetter, Message
from taskmq.policy import endings
from taskmq.states import State
from taskmq.transports.base import QueueShare
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.preview import AHEAD_CAP, ahead_of, claim_order
from taskmq.transports.memory.store import Store
from taskmq.transports.operators import Depth, Found, Operators, Peeked, QueueInfo, Revoked


class MemoryOperators(Operators):
    """Exact answers: every one is given under the lock."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def depth(self, queues: Sequence[str] | None = None) -> list[Depth]:
        counts: dict[tuple[str, int], dict[Place, int]] = defaultdict(lambda: defaultdict(int))
        oldest: dict[tuple[str, int], float] = {}
        with self._store.at():
            for entry in self._store.entries.values():
                if queues is not None and entry.message.queue not in queues:
                    continue
                band = (entry.message.queue, entry.message.priority)
                counts[band][entry.place] += 1
                if entry.place is Place.READY:
                    oldest[band] = min(entry.visible_at, oldest.get(band, entry.visible_at))
        ordered = sorted(counts, key=lambda band: (band[0], -band[1]))
        return [
            Depth(
                queue=band[0],
                priority=band[1],
                ready=counts[band][Place.READY],
                scheduled=counts[band][Place.SCHEDULED],
                reserved=counts[band][Place.RESERVED],
                running=counts[band][Place.RUNNING],
                blocked=counts[band][Place.BLOCKED],
                oldest_at=oldest.get(band),
            )
            for band in ordered
        ]

    def queues(self) -> list[QueueInfo]:
        with self._store.at():
            return [QueueInfo(name, paused) for name, paused in sorted(self._store.paused.items())]

    def peek(self, queues: Sequence[QueueShare], limit: int) -> list[Peeked]:
        with self._store.at() as now:
            return [
                Peeked(
                    message=entry.message,
                    effective=entry.message.priority,
                    visible_at=entry.visible_at,
                    seq=entry.seq,
                    deliveries=entry.deliveries,
                    yields=entry.yields,
                    yieldable=entry.yieldable,
                )
                for entry in claim_order(self._store, queues, limit, now)
            ]

    def find(self, task_id: str) -> list[Found]:
        with self._store.at():
            live = [self._found(entry) for entry in self._store.of_task(task_id)]
            letters = [d for d in self._store.dead.values() if d.message.task_id == task_id]
            return live + [Found.buried(letter) for letter in reversed(letters)]

    def revoke(self, task_ids: Sequence[str], *, reason: str = "") -> list[Revoked]:
        with self._store.at() as now:
            return [self._revoke(task_id, reason, now) for task_id in task_ids]

    def _revoke(self, task_id: str, reason: str, now: float) -> Revoked:
        store = self._store
        live = store.of_task(task_id)
        running = [e for e in live if e.place is Place.RUNNING]
        was = State.RUNNING if running else store.state(task_id, now)
        if not was.final:
            store.revoked[task_id] = (now, reason)
        for entry in live:
            if entry.place is not Place.RUNNING:
                how = endings.revoked(entry.message, reason, **store.ending(now))
                store.end(entry, how, now)
        return Revoked(task_id, was, ended=bool(live) and not running)

    def is_revoked(self, task_id: str) -> bool:
        with self._store.at():
            return task_id in self._store.revoked

    def purge(self, queue: str) -> int:
        store = self._store
        purged = 0
        with store.at() as now:
            # Again until nothing is left: an ended holder of a key makes its heir claimable.
            while unheld := [
                e for e in store.entries.values() if e.message.queue == queue and not e.place.held
            ]:
                for entry in unheld:
                    how = endings.purged(entry.message, **store.ending(now))
                    store.end(entry, how, now)
                purged += len(unheld)
            store.waiting.rates.emptied(queue)
        return purged

    def pause(self, queue: str) -> None:
        with self._store.at():
            self._store.paused[queue] = True

    def resume(self, queue: str) -> None:
        with self._store.at():
            self._store.paused[queue] = False
            self._store.waiting.news = True

    def dead_letters(
        self, *, queue: str | None = None, after: int = 0, limit: int = 100
    ) -> list[DeadLetter]:
        with self._store.at():
            # Numbers only grow, so the insertion order is theirs.
            wanted = (
                letter
                for letter in self._store.dead.values()
                if letter.number > after and (queue is None or letter.message.queue == queue)
            )
            return [letter for letter, _ in zip(wanted, range(limit), strict=False)]

    def dead_letter(self, key: str) -> DeadLetter | None:
        with self._store.at():
            if key.isdecimal() and int(key) in self._store.dead:
                return self._store.dead[int(key)]
            of_task = [d for d in self._store.dead.values() if d.message.task_id == key]
            return of_task[-1] if of_task else None

    def replay(self, numbers: Sequence[int], *, priority: int | None = None) -> list[Message]:
        store = self._store
        queued = []
        with store.at() as now:
            for number in numbers:
                letter = store.dead.get(number)
                # Submitted again meanwhile: the letter stays until that one has ended.
                if letter is None or store.is_live(letter.message):
                    continue
                del store.dead[number]
                message = endings.replayed(letter.message, now=now, priority=priority)
                # The old ending is over: whoever asks now waits for the new one.
                store.results.pop(message.task_id, None)
                store.insert(message, now)
                queued.append(message)
        return queued

    def drop(self, numbers: Sequence[int]) -> int:
        with self._store.at():
            return sum(self._store.dead.pop(n, None) is not None for n in numbers)

    def _found(self, entry: Entry) -> Found:
        store = self._store
        message = entry.message
        held = entry.place.held
        ahead = 0 if held else ahead_of(store, entry)
        blocked_by: tuple[str, ...] = ()
        if entry.place is Place.BLOCKED and message.concurrency is not None:
            holders = store.waiting.keys.holders(message.concurrency.key)
            holders.sort(key=lambda e: e.sort_key)
            blocked_by = tuple(e.message.task_id for e in holders)
        return Found(
            message=message,
            state=entry.state,
            seq=entry.seq,
            visible_at=entry.visible_at,
            due_at=None if held else entry.due_at,
            yielded=entry.yields > 0 and entry.due_at not in (None, entry.visible_at),
            deliveries=entry.deliveries,
            yields=entry.yields,
            worker=entry.worker,
            lease_until=entry.lease_until if held else None,
            paused=store.paused.get(message.queue, False),
            ahead=min(ahead, AHEAD_CAP),
            ahead_capped=ahead > AHEAD_CAP,
            blocked_by=blocked_by,
            rate_until=self._rate_until(entry),
        )

    def _rate_until(self, entry: Entry) -> float | None:
        rate = entry.message.rate
        if rate is None or entry.place.held:
            return None
        now = self._store.clock.now()
        state = self._store.waiting.rates.state(rate.key, now)
        if entry.booked:
            token_at = max(state.gate, entry.due_at or 0.0)
        else:
            token_at = max(state.next_at, state.closed_until, state.gate)
        return token_at if token_at > now else None
