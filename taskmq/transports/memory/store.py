"""The data of a memory transport and the moves between places, under one lock.

Every public operation runs inside `Store.at()`, which reads the clock once and first lets time take
effect: due messages become claimable and expired ones end. So peek and reserve are exact, and no
operation sees a message that is past its time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random

from taskmq.clock import Clock
from taskmq.errors import TransportUnavailable
from taskmq.message import DeadLetter, Delivery, Message, ResultRecord
from taskmq.policy import endings
from taskmq.policy.endings import Circumstances, Ended
from taskmq.policy.stable_heap import StableHeap
from taskmq.states import State
from taskmq.transports.base import Settings
from taskmq.transports.memory.entries import Entry, Place
from taskmq.transports.memory.lanes import Lane
from taskmq.transports.memory.limits import Keys, Rates
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
        self.rates = Rates()
        self.keys = Keys()
        self.workflows = Workflows()
        self._lanes: dict[str, dict[str | None, Lane]] = {}
        self._numbered: list[Lane] = []
        self._due: dict[str, StableHeap[Entry]] = {}
        self._expiring: StableHeap[Entry] = StableHeap()
        self._by_message: dict[str, Entry] = {}
        self._by_task: dict[str, dict[int, Entry]] = {}
        self._seq = 0
        self._stamp = 0.0
        self._dead_number = 0
        self._news = False
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
            self._let_time_pass(now)
            try:
                yield now
            finally:
                news, self._news = self._news, False
        if news:
            self.waker.wake()

    # -- looking ----------------------------------------------------------------------------------

    def lanes(self, queue: str) -> Iterable[Lane]:
        return self._lanes.get(queue, {}).values()

    def lane(self, number: int) -> Lane:
        return self._numbered[number]

    def held(self, delivery: Delivery) -> Entry | None:
        """The entry of a delivery whose lease is still its own; None once it was lost (fencing)."""
        entry = self.entries.get(delivery.seq)
        if entry is None or not entry.place.held or entry.token != delivery.token:
            return None
        return entry

    def is_live(self, message: Message) -> bool:
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

    def next_due(self, queues: Iterable[str], now: float) -> float | None:
        """The earliest "not before" to come, or the time of a lane's next token, in these queues."""
        times = []
        for queue in queues:
            waiting = self._due.get(queue)
            first = waiting.peek() if waiting is not None else None
            if first is not None and first[2].due_at is not None:
                times.append(first[2].due_at)
            for lane in self.lanes(queue):
                if lane.rate is not None and lane:
                    state = self.rates.state(lane.rate)
                    times.append(max(state.next_at, state.closed_until))
        return min((t for t in times if t > now), default=None)

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
            if message.expires_at is not None:
                self._expiring.push(
                    0, entry, key=entry.seq, at=message.expires_at, sequence=entry.seq
                )
            self._await(entry, now)

    def take_out(self, entry: Entry) -> None:
        """Out of whatever it waits in; its key and its row stay."""
        if entry.place is Place.READY:
            self._lane_of(entry).remove(entry)
        elif entry.place is Place.SCHEDULED:
            self._unschedule(entry)
        elif entry.place is Place.BLOCKED and entry.message.concurrency is not None:
            self.keys.unblock(entry, entry.message.concurrency)
        if not entry.place.held:
            self._expiring.remove(entry.seq)

    def free_key(self, entry: Entry, now: float) -> None:
        """Give up the concurrency key, so that the next blocked ones have it."""
        key = entry.message.concurrency
        if key is not None and entry.has_key:
            for heir in self.keys.release(entry, key):
                self._await_admitted(heir, now)

    def delete(self, entry: Entry, now: float) -> None:
        """Forget a message, wherever it is."""
        self.take_out(entry)
        # Gone before its heirs come, so that nothing finds it half deleted.
        message = entry.message
        del self.entries[entry.seq]
        del self._by_message[message.message_id]
        of_task = self._by_task[message.task_id]
        del of_task[entry.seq]
        if not of_task:
            del self._by_task[message.task_id]
        self.free_key(entry, now)

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
        self.results[record.task_id] = record
        if record.state.final:
            self.changed.notify_all()

    def tell(self) -> None:
        """Wake whoever waits once this operation is over."""
        self._news = True

    # -- the moves themselves -------------------------------------------------------------------------

    def _let_time_pass(self, now: float) -> None:
        # Expiry first: a message that fell due and expired meanwhile never starts (I7).
        while (found := self._expiring.peek()) is not None:
            entry = found[2]
            expires_at = entry.message.expires_at
            if expires_at is None or expires_at > now:
                break
            self.end(entry, endings.expired(entry.message, **self.ending(now)), now)
        for waiting in self._due.values():
            while (found := waiting.peek()) is not None:
                entry = found[2]
                if entry.due_at is not None and entry.due_at > now:
                    break
                waiting.pop()
                self._await(entry, now)

    def _await(self, entry: Entry, now: float) -> None:
        if entry.due_at is not None and entry.due_at > now:
            self._schedule(entry, entry.due_at)
            return
        entry.due_at = None
        key = entry.message.concurrency
        if key is None or entry.has_key:
            self._await_admitted(entry, now)
            return
        admitted, swapped = self.keys.admit(entry, key)
        if swapped is not None:
            self._swap_out(swapped, now)
        if admitted:
            self._await_admitted(entry, now)
        else:
            self.keys.block(entry, key)

    def _await_admitted(self, entry: Entry, now: float) -> None:
        """Ready, or set aside until its "not before" with the key in hand (a yield, a booked token)."""
        if entry.due_at is not None and entry.due_at > now:
            self._schedule(entry, entry.due_at)
            return
        entry.due_at = None
        entry.place = Place.READY
        self._lane_of(entry).add(entry)
        self._news = True

    def _schedule(self, entry: Entry, due_at: float) -> None:
        entry.place = Place.SCHEDULED
        waiting = self._due.setdefault(entry.message.queue, StableHeap())
        waiting.push(0, entry, key=entry.seq, at=due_at, sequence=entry.seq)

    def _unschedule(self, entry: Entry) -> None:
        waiting = self._due.get(entry.message.queue)
        if waiting is not None:
            waiting.remove(entry.seq)

    def _swap_out(self, entry: Entry, now: float) -> None:
        if entry.place is Place.READY:
            self._lane_of(entry).remove(entry)
        else:
            self._unschedule(entry)
            if entry.due_at is not None and entry.due_at <= now:
                entry.due_at = None
        key = entry.message.concurrency
        assert key is not None
        self.keys.block(entry, key)

    def _lane_of(self, entry: Entry) -> Lane:
        lanes = self._lanes.setdefault(entry.message.queue, {})
        lane = lanes.get(entry.rate_lane)
        if lane is None:
            lane = Lane(entry.message.queue, entry.rate_lane, len(self._numbered))
            lanes[entry.rate_lane] = lane
            self._numbered.append(lane)
        return lane
