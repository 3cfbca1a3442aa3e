"""Workers, commands, events and duties of a memory transport."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from taskmq.coordination.base import Command, Coordination, Event, Maintained, WorkerInfo
from taskmq.policy.reaping import duty_is_free
from taskmq.transports.memory.maintenance import Maintenance
from taskmq.transports.memory.store import Store

RING = 10_000
# How long an answer waits for whoever asked.
_REPLY_TTL = 60.0


class MemoryCoordination(Coordination):
    """Kept beside the messages, under the same lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._maintenance = Maintenance(store)
        self._workers: dict[str, WorkerInfo] = {}
        self._commands: dict[str, list[tuple[float, Command]]] = {}
        self._replies: dict[str, list[tuple[float, str, Mapping[str, Any]]]] = {}
        self._events: deque[Event] = deque(maxlen=RING)
        self._last_event = 0
        self._duties: dict[str, tuple[str, float, float]] = {}
        self._numbers = itertools.count(1)

    def report(self, worker: WorkerInfo) -> None:
        with self._store.at():
            self._workers[worker.name] = worker

    def leave(self, name: str) -> None:
        with self._store.at():
            self._workers.pop(name, None)
            self._commands.pop(name, None)

    def workers(self, *, seen_within: float = 60.0) -> list[WorkerInfo]:
        with self._store.at() as now:
            return self._live(now, seen_within)

    def send(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        to: Sequence[str] | None = None,
        reply_to: str | None = None,
        expires: float = 60.0,
    ) -> list[str]:
        with self._store.at() as now:
            names = [w.name for w in self._live(now, 60.0)] if to is None else list(to)
            for name in names:
                sent = Command(next(self._numbers), command, dict(arguments or {}), reply_to)
                self._commands.setdefault(name, []).append((now + expires, sent))
            self._store.waiting.news = True
            return names

    def commands(self, worker: str) -> list[Command]:
        if worker not in self._commands:
            return []
        with self._store.at() as now:
            queued = self._commands.pop(worker, [])
            return [command for until, command in queued if until > now]

    def reply(self, reply_to: str, worker: str, answer: Mapping[str, Any]) -> None:
        with self._store.at() as now:
            answers = self._replies.setdefault(reply_to, [])
            answers.append((now + _REPLY_TTL, worker, dict(answer)))
            self._store.waiting.news = True

    def replies(self, reply_to: str) -> list[tuple[str, Mapping[str, Any]]]:
        with self._store.at() as now:
            answers = self._replies.pop(reply_to, [])
            return [(worker, answer) for until, worker, answer in answers if until > now]

    def emit(self, events: Sequence[tuple[str, float, Mapping[str, Any]]]) -> None:
        with self._store.at():
            for kind, at, fields in events:
                self._last_event += 1
                self._events.append(Event(self._last_event, kind, at, dict(fields)))

    def events(self, *, after: int = 0, limit: int = 1000) -> list[Event]:
        with self._store.at():
            later = (event for event in self._events if event.number > after)
            return list(itertools.islice(later, limit))

    def last_event(self) -> int:
        with self._store.at():
            return self._last_event

    def take_duty(self, name: str, holder: str, ttl: float) -> bool:
        with self._store.at() as now:
            held_by, until, held_for = self._duties.get(name, (holder, now, ttl))
            if held_by != holder and not duty_is_free(until, held_for, now):
                return False
            self._duties[name] = (holder, now + ttl, ttl)
            return True

    def drop_duties(self, holder: str) -> None:
        with self._store.at():
            self._duties = {n: d for n, d in self._duties.items() if d[0] != holder}

    def reap(self) -> Maintained:
        return self._maintenance.reap()

    def sweep(self) -> Maintained:
        swept = self._maintenance.sweep()
        with self._store.at() as now:
            return Maintained(done=swept.done + self._sweep_mail(now))

    def checkpoint(self) -> Maintained:
        """Memory has nothing to write back."""
        return Maintained()

    def _live(self, now: float, seen_within: float) -> list[WorkerInfo]:
        live = [w for w in self._workers.values() if w.seen_at >= now - seen_within]
        return sorted(live, key=lambda w: w.name)

    def _sweep_mail(self, now: float) -> int:
        done = 0
        for name, queued in list(self._commands.items()):
            kept = [item for item in queued if item[0] > now]
            done += len(queued) - len(kept)
            if kept:
                self._commands[name] = kept
            else:
                del self._commands[name]
        for reply_to, answers in list(self._replies.items()):
            fresh = [item for item in answers if item[0] > now]
            done += len(answers) - len(fresh)
            if fresh:
                self._replies[reply_to] = fresh
            else:
                del self._replies[reply_to]
        return done
