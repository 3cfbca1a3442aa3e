"""The data of a memory transport under one lock: messages, results, dead letters, and how they end.

Every public operation runs inside `Store.at()`, which reads the clock once and first lets time take
effect: due messages become claimable and expired ones end. So peek and reserve are exact, and no
operation sees a message that is past its time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from taskmq.clock import Clock
from taskmq.errors import TransportUnavailable
from taskmq.message import DeadLetter, Delivery, Message, ResultRecord
from taskmq.policy import endings
from taskmq.policy.endings import Circumstances, Ended
from taskmq.states import State
from taskmq.transports.base import Settings
from taskmq.transports.memory.entries import Entry
from taskmq.transports.memory.waiting import Waiting
from taskmq.transports.memory.waker import Waker
from taskmq.transports.memory.workflows import Workflows


class Store:
    """Messages by place, their indexes, results and dead letters."""

    def __init__(self, settings: Settings, clock: Clock, random: Random) -> None:
        self.settings = settings
        self.clock = clock
        self.random = random
        # Notified when a final result is written; its lock is the lock of everything here.
        self.changed = threading.Condition()
        self.waker = Waker()
        self.entries: dict[int, Entry] = {}
        self.results: dict[str, ResultRecord] = {}
        self.dead: dict[int, DeadLetter] = {}
        self.revoked: dict[str, tuple[float, str]] = {}
        self.paused: dict[str, bool] = {}
        self.counters: dict[str, int] = {}
        self.waiting = Waiting()
        self.workflows = Workflows()
        self._by_message: dict[str, Entry] = {}
        self._by_task: dict[str, dict[int, Entry]] = {}
        self._seq = 0
        self._stamp = 0.0
        self._dead_number = 0
        self._pid = os.getpid()

    @contextmanager
    def at(self) -> Iterator[float]:
        """Hold the lock; the time of this operation. Whoever waits is woken when something came."""
        if os.getpid() != self._pid:
            raise TransportUnavailable(
                "a memory transport lives in the process that made it, and this is a forked child; "
                "use a sqlite:// URL where several processes share messages"
            )
        with self.changed:
            now = self.clock.now()
            # Expiry first: a message that fell due and expired meanwhile never starts (I7).
            while (late := self.waiting.next_expired(now)) is not None:
                self.end(late, endings.expired(late.message, **self.ending(now)), now)
            self.waiting.promote(now)
            try:
                yield now
            finally:
                news, self.waiting.news = self.waiting.news, False
        if news:
            self.waker.wake()

    # -- looking ----------------------------------------------------------------------------------

    def held(self, delivery: Delivery) -> Entry | None:
        """The entry of a delivery whose lease is still its own; None once it was lost (fencing)."""
        entry = self.entries.get(delivery.seq)
        if entry is None or not entry.place.held or entry.token != delivery.token:
            return None
        return entry

    def is_live(self, message: Message) -> bool:
        """Whether a message of this message_id waits or is held."""
        return message.message_id in self._by_message

    def of_task(self, task_id: str) -> list[Entry]:
        """The live messages of a task, newest first."""
        return sorted(self._by_task.get(task_id, {}).values(), key=lambda e: -e.seq)

    def result(self, task_id: str, now: float) -> ResultRecord | None:
        """The record of a task, unless its time is over."""
        record = self.results.get(task_id)
        if record is None or (record.expires_at is not None and record.expires_at <= now):
            return None
        return record

    def state(self, task_id: str, now: float) -> State:
        """Where the message is, then its record, then the dead letters."""
        live = self.of_task(task_id)
        if live:
            return live[0].state
        record = self.result(task_id, now)
        if record is not None:
            return record.state
        if any(d.message.task_id == task_id for d in self.dead.values()):
            return State.DEAD
        return State.UNKNOWN

    # -- arriving and leaving -----------------------------------------------------------------------

    def stamp(self, now: float) -> float:
        """A submit's place in time: a clock that steps back does not reorder live messages."""
        self._stamp = max(now, self._stamp) if self.entries else now
        return self._stamp

    def insert(self, message: Message, now: float) -> bool:
        """Store a new message; False when its message_id is live already."""
        if self.is_live(message):
            return False
        self._seq += 1
        stamp = self.stamp(now)
        later = message.eta is not None and message.eta > now
        visible_at = message.eta if later and message.eta is not None else stamp
        entry = Entry(
            message=message,
            seq=self._seq,
            visible_at=visible_at,
            due_at=visible_at if later else None,
        )
        self.entries[entry.seq] = entry
        self._by_message[message.message_id] = entry
        self._by_task.setdefault(message.task_id, {})[entry.seq] = entry
        self.paused.setdefault(message.queue, False)
        if message.rate is not None:
            self.waiting.rates.adopt(message.rate, message.queue, now)
        self.put_back(entry, now)
        return True

    def put_back(self, entry: Entry, now: float) -> None:
        """Let a message wait in the place its times, marks and limits say."""
        message = entry.message
        mark = self.revoked.get(message.task_id)
        if mark is not None:
            self.end(entry, endings.revoked(message, mark[1], **self.ending(now)), now)
        elif message.expires_at is not None and message.expires_at <= now:
            self.end(entry, endings.expired(message, **self.ending(now)), now)
        else:
            self.waiting.add(entry, now)

    def delete(self, entry: Entry, now: float) -> None:
        """Forget a message, wherever it is."""
        self.waiting.remove(entry)
        # Gone before its heirs come, so that nothing finds it half deleted.
        message = entry.message
        del self.entries[entry.seq]
        del self._by_message[message.message_id]
        of_task = self._by_task[message.task_id]
        del of_task[entry.seq]
        if not of_task:
            del self._by_task[message.task_id]
        self.waiting.free_key(entry, now)

    # -- endings ----------------------------------------------------------------------------------

    def ending(self, now: float) -> Circumstances:
        """The arguments every function of `policy.endings` takes."""
        return Circumstances(now=now, result_expires=self.settings.result_expires)

    def end(self, entry: Entry, how: Ended, now: float, *, reason: str = "") -> None:
        """End a message without a worker; with a `reason` it becomes a dead letter."""
        self.delete(entry, now)
        if reason:
            self.bury(entry, reason, how.error, now)
        if how.result is not None:
            self.put_result(how.result)
        self.workflows.apply(self, how.then, now)

    def bury(self, entry: Entry, reason: str, error: str, now: float) -> None:
        """Keep a deleted message as a dead letter."""
        self._dead_number += 1
        self.dead[self._dead_number] = DeadLetter(
            number=self._dead_number,
            message=entry.message,
            reason=reason,
            error=error,
            died_at=now,
            deliveries=entry.deliveries,
            yields=entry.yields,
        )

    def put_result(self, record: ResultRecord) -> None:
        """Write a record; a final one wakes whoever waits for it."""
        self.results[record.task_id] = record
        if record.state.final:
            self.changed.notify_all()
