"""Every statement of the hot paths seeks: none reads a table from end to end (DESIGN §6.1).

The statements are collected from a run of the verbs, not listed, so that a new one cannot slip past.
"""

from __future__ import annotations

import re

import pytest

from taskmq.message import ConcurrencyKey, Rate
from taskmq.policy.aging import Aging
from taskmq.transports.base import Outcome, QueueShare, Verb

# What grows with the backlog. The others hold at most what workers hold, or a row per queue.
LARGE = ("message", "ready", "scheduled", "blocked", "dead", "result", "holder")
QUEUES = ("a", "b", "c")
SHARES = tuple(QueueShare(name) for name in QUEUES)


def collect(transport, run) -> set[str]:
    """The statements that `run` executes, as SQLite sees them, on both connections."""
    found: set[str] = set()
    transport.operators.queues()
    connections = [transport._store._writer, transport._store._reader]
    for connection in connections:
        connection.set_trace_callback(found.add)
    run()
    for connection in connections:
        connection.set_trace_callback(None)
    return {sql for sql in found if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE)", sql)}


def scans(transport, statements: set[str]) -> list[tuple[str, str]]:
    """`(step, statement)` of every step that reads a large table from end to end."""
    found = []
    for sql in sorted(statements):
        for *_, step in transport._store._writer.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall():
            scanned = re.match(r"SCAN (?:TABLE )?(\w+)", step)
            if scanned is None or any(one_row in sql for one_row in ONE_ROW):
                continue
            if TABLES.get(scanned[1], scanned[1]) in LARGE:
                found.append((step, sql))
    return found


# Called scans, but they end after one row.
ONE_ROW = ("FROM message ORDER BY seq DESC LIMIT 1", "EXISTS(SELECT 1 FROM scheduled)")
# Aliases in the statements.
TABLES = {"m": "message", "r": "ready", "h": "holder", "b": "blocked"}


@pytest.fixture
def busy(bench):
    """A bench with messages of every kind in every place."""
    now = bench.clock.now()
    for queue in QUEUES:
        bench.submit(f"{queue}1", f"{queue}2", f"{queue}3", queue=queue)
        bench.submit(f"{queue}-late", queue=queue, eta=now + 5, priority=3)
        bench.submit(f"{queue}-old", queue=queue, expires_at=now + 5, priority=5)
        key = ConcurrencyKey("key", 1)
        bench.submit(f"{queue}-k1", f"{queue}-k2", queue=queue, concurrency=key, priority=4)
        bench.submit(f"{queue}-r1", f"{queue}-r2", queue=queue, rate=Rate("rate", 10), priority=2)
    bench.transport.operators.revoke(["nobody"])
    return bench


def worker_life(bench) -> None:
    transport = bench.transport
    request = bench.request(3, queues=QUEUES, room=2)
    held = transport.turn((), request).deliveries
    transport.start([d for d in held if not d.started])
    for aging in (None, Aging(1.0)):
        transport.peek_max_priority(SHARES, aging=aging)
        bench.reserve(1, queues=QUEUES, aging=aging)
    transport.next_due(SHARES)
    bench.clock.advance(6)
    held = transport.turn([bench.succeeded(d) for d in held], request).deliveries
    transport.extend(held, 30)
    verbs = [Verb.RETRY, Verb.RELEASE, Verb.BURY, Verb.RELEASE, Verb.FINISH]
    outcomes = [
        Outcome(delivery=d, verb=verb, delay=n % 2, reason="r")
        for n, (d, verb) in enumerate(zip(held, verbs, strict=False))
    ]
    transport.turn(outcomes, request)
    unstarted = bench.hold(queues=QUEUES)
    transport.yield_reservation(unstarted, delay=1)
    bench.lose_leases()
    bench.sweep()
    bench.drain(queues=QUEUES)


def test_a_workers_life_scans_nothing_large(busy) -> None:
    statements = collect(busy.transport, lambda: worker_life(busy))

    assert len(statements) > 60
    assert scans(busy.transport, statements) == []


def test_submitting_scans_nothing_large(busy) -> None:
    def run() -> None:
        busy.submit("one")
        busy.submit("with", eta=busy.clock.now() + 9, expires_at=busy.clock.now() + 99)
        busy.submit("key", concurrency=ConcurrencyKey("key", 1))
        busy.transport.submit([busy.message(f"many{n}") for n in range(5)])

    assert scans(busy.transport, collect(busy.transport, run)) == []


def test_looking_at_one_task_scans_nothing_large(busy) -> None:
    transport = busy.transport
    names = ["a1", "a-late", "b-k2", "b-r2", "nobody"]

    def run() -> None:
        for name in names:
            transport.operators.find(name)
            transport.results.state(name)
            transport.results.get(name)
            transport.operators.is_revoked(name)
            transport.operators.dead_letter(name)
        transport.results.wait(names, 0)
        transport.operators.revoke(names)
        transport.operators.peek(SHARES, 10)

    assert scans(transport, collect(transport, run)) == []


def test_a_scan_would_be_found(busy) -> None:
    assert scans(busy.transport, {"SELECT body FROM message WHERE task = 'x'"})
    assert scans(busy.transport, {"SELECT seq FROM ready r WHERE visible_at > 5 LIMIT 1"})
