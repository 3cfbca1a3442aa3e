"""Workers, commands, replies, events and duties as tables: shared, small and expiring."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from taskmq.coordination.base import Command, Coordination, Event, Maintained, WorkerInfo
from taskmq.policy.reaping import LeaseWatch, duty_is_free
from taskmq.transports.sqlite import reaping, sweeping
from taskmq.transports.sqlite.rows import dump
from taskmq.transports.sqlite.times import micros
from taskmq.transports.sqlite.tx import Engine, Tx

# How long an answer waits for who asked.
_REPLY_KEPT = 60.0

_INFO = ("pid", "host", "queues", "slots", "free_slots", "started_at", "last_poll_at", "tasks")


class SQLiteCoordination(Coordination):
    """See `Coordination`. Whoever asks often asks without a lock first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._leases = LeaseWatch(engine.settings.lease)

    # -- workers ----------------------------------------------------------------------------------

    def report(self, worker: WorkerInfo) -> None:
        info = {name: getattr(worker, name) for name in _INFO}
        info["state"] = worker.state
        info["details"] = dict(worker.details)
        row = (worker.name, micros(worker.seen_at), dump(info, f"the report of {worker.name}"))
        self._engine.write(
            lambda tx: tx.execute(
                "INSERT INTO worker(name, seen_at, info) VALUES (?, ?, ?) ON CONFLICT(name) DO UPDATE "
                "SET seen_at = excluded.seen_at, info = excluded.info",
                row,
            )
        )

    def leave(self, name: str) -> None:
        def work(tx: Tx) -> None:
            tx.execute("DELETE FROM worker WHERE name = ?", (name,))
            tx.execute("DELETE FROM command WHERE worker = ?", (name,))

        self._engine.write(work)

    def workers(self, *, seen_within: float = 60.0) -> list[WorkerInfo]:
        return self._engine.read(lambda tx: _workers(tx, seen_within))

    # -- commands ---------------------------------------------------------------------------------

    def send(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        to: Sequence[str] | None = None,
        reply_to: str | None = None,
        expires: float = 60.0,
    ) -> list[str]:
        text = dump(dict(arguments or {}), f"the arguments of {command}")

        def work(tx: Tx) -> list[str]:
            names = [w.name for w in _workers(tx, 60.0)] if to is None else list(to)
            until = tx.now + micros(expires)
            tx.executemany(
                "INSERT INTO command(worker, name, arguments, reply_to, expires_at) "
                "VALUES (?, ?, ?, ?, ?)",
                [(name, command, text, reply_to, until) for name in names],
            )
            return names

        return self._engine.write(work)

    def commands(self, worker: str) -> list[Command]:
        if not self._engine.glance(lambda tx: _any(tx, "command", "worker", worker)):
            return []

        def work(tx: Tx) -> list[Command]:
            rows = tx.execute(
                "SELECT number, name, arguments, reply_to FROM command "
                "WHERE worker = ? AND expires_at > ? ORDER BY number",
                (worker, tx.now),
            ).fetchall()
            tx.execute("DELETE FROM command WHERE worker = ?", (worker,))
            return [Command(n, name, json.loads(text), to) for n, name, text, to in rows]

        return self._engine.write(work)

    def reply(self, reply_to: str, worker: str, answer: Mapping[str, Any]) -> None:
        text = dump(dict(answer), f"the answer of {worker}")
        self._engine.write(
            lambda tx: tx.execute(
                "INSERT INTO reply(reply_to, worker, answer, expires_at) VALUES (?, ?, ?, ?)",
                (reply_to, worker, text, tx.now + micros(_REPLY_KEPT)),
            )
        )

    def replies(self, reply_to: str) -> list[tuple[str, Mapping[str, Any]]]:
        if not self._engine.read(lambda tx: _any(tx, "reply", "reply_to", reply_to)):
            return []

        def work(tx: Tx) -> list[tuple[str, Mapping[str, Any]]]:
            rows = tx.execute(
                "SELECT worker, answer FROM reply WHERE reply_to = ? ORDER BY number", (reply_to,)
            ).fetchall()
            tx.execute("DELETE FROM reply WHERE reply_to = ?", (reply_to,))
            return [(worker, json.loads(text)) for worker, text in rows]

        return self._engine.write(work)

    # -- events -----------------------------------------------------------------------------------

    def emit(self, events: Sequence[tuple[str, float, Mapping[str, Any]]]) -> None:
        if not events:
            return
        rows = [(kind, at, dump(dict(fields), f"the event {kind}")) for kind, at, fields in events]
        self._engine.write(
            lambda tx: tx.executemany("INSERT INTO event(kind, at, fields) VALUES (?, ?, ?)", rows)
        )

    def events(self, *, after: int = 0, limit: int = 1000) -> list[Event]:
        rows = self._engine.read(
            lambda tx: tx.execute(
                "SELECT number, kind, at, fields FROM event WHERE number > ? ORDER BY number LIMIT ?",
                (after, limit),
            ).fetchall()
        )
        return [Event(number, kind, at, json.loads(fields)) for number, kind, at, fields in rows]

    def last_event(self) -> int:
        newest = self._engine.read(lambda tx: tx.row("SELECT max(number) FROM event"))
        return int(newest[0] or 0)

    # -- duties -----------------------------------------------------------------------------------

    def take_duty(self, name: str, holder: str, ttl: float) -> bool:
        def work(tx: Tx) -> bool:
            if _held_by_other(tx, name, holder):
                return False
            taken = tx.execute(
                "INSERT INTO duty(name, holder, until, ttl) VALUES (?, ?, ?, ?) "
                "ON CONFLICT(name) DO UPDATE SET holder = excluded.holder, until = excluded.until, "
                "ttl = excluded.ttl",
                (name, holder, tx.now + micros(ttl), micros(ttl)),
            )
            return taken.rowcount > 0

        # Most workers find it taken: they need not write to learn that.
        if self._engine.glance(lambda tx: _held_by_other(tx, name, holder)):
            return False
        return self._engine.write(work)

    def drop_duties(self, holder: str) -> None:
        self._engine.write(lambda tx: tx.execute("DELETE FROM duty WHERE holder = ?", (holder,)))

    def reap(self) -> Maintained:
        return reaping.reap(self._engine, self._leases)

    def sweep(self) -> Maintained:
        return sweeping.sweep(self._engine)

    def checkpoint(self) -> Maintained:
        return sweeping.checkpoint(self._engine)


def _any(tx: Tx, table: str, column: str, value: str) -> bool:
    sql = f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1"  # noqa: S608
    return tx.row(sql, (value,)) is not None


def _held_by_other(tx: Tx, name: str, holder: str) -> bool:
    row = tx.row("SELECT holder, until, ttl FROM duty WHERE name = ?", (name,))
    return row is not None and row[0] != holder and not duty_is_free(row[1], row[2], tx.now)


def _workers(tx: Tx, seen_within: float) -> list[WorkerInfo]:
    rows = tx.execute(
        "SELECT name, seen_at, info FROM worker WHERE seen_at >= ? ORDER BY name",
        (tx.now - micros(seen_within),),
    ).fetchall()
    found = []
    for name, seen_at, text in rows:
        info = json.loads(text)
        info["queues"] = tuple(info["queues"])
        info["tasks"] = tuple(info["tasks"])
        found.append(WorkerInfo(name=name, seen_at=seen_at / 1_000_000, **info))
    return found
