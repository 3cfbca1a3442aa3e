"""One run: work under a nemesis, heal, drain, reconcile."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from taskmq.transports.base import Settings
from taskmq.transports.sqlite import SQLiteTransport
from tests.stress.invariants import History, Violation, check
from tests.stress.log import Event, Log, read_logs
from tests.stress.nemesis import WEIGHTS, Nemesis
from tests.stress.terms import DATABASE, LEASE, MAX_DELIVERIES
from tests.stress.troupe import Troupe
from tests.support.processes import processes
from tests.support.waiting import wait_until

KILLS = 10
WORKERS = 2
_SHOWN = 3


class Found(NamedTuple):
    """What a run came to."""

    seed: int
    directory: Path
    history: History
    violations: list[Violation]
    nemesis: Nemesis

    def invariants(self) -> set[str]:
        return {v.invariant for v in self.violations}


def perform(
    directory: Path,
    seed: int,
    *,
    mutant: str = "",
    seconds: float = 2.5,
    kills: int = KILLS,
    stops: int = 0,
    weights: Mapping[str, int] = WEIGHTS,
    until_overtaken: bool = False,
) -> Found:
    """Run once in an empty directory, which keeps the logs and the database."""
    print(f"seed {seed}, {mutant or 'the engine as it is'}, logs and database in {directory}")
    transport = SQLiteTransport(directory / DATABASE, Settings(lease=LEASE))
    transport.open()
    log = Log(directory / "nemesis.jsonl")
    with processes(directory) as started:
        troupe = Troupe(started, directory, seed, mutant=mutant, workers=WORKERS)
        wait_until(troupe.ready, 20, what="the workers")
        nemesis = Nemesis(
            troupe,
            log,
            seed,
            weights=weights,
            overtaken=partial(overtaken, directory) if until_overtaken else None,
        )
        nemesis.act(seconds=seconds, kills=kills, stops=stops)
        nemesis.heal()
        troupe.stop_producers()

        def drained() -> bool:
            troupe.mend_supervisors()
            return not transport.operators.depth()

        wait_until(drained, LEASE + 15, every=0.05, what=f"the end of all messages (seed {seed})")
        troupe.stop_supervisors()
    log.close()
    events = read_logs(directory)
    history = reconciled(transport, events, lease=LEASE, max_deliveries=MAX_DELIVERIES)
    transport.close()
    violations = [*check(history), *integrity(directory / DATABASE)]
    return Found(seed, directory, history, violations, nemesis)


def overtaken(directory: Path, supervisor: int) -> bool:
    """Whether another one has finished what this one was running, and has not heard of yet."""
    running = set()
    for event in read_logs(directory):
        if event["ev"] == "start" and event["supervisor"] == supervisor:
            running.add(event["id"])
        elif event["ev"] in ("settled", "stale") and event["id"] in running:
            if event["pid"] != supervisor and event["verb"] == "finish":
                return True
            running.discard(event["id"])
    return False


def reconciled(
    transport: SQLiteTransport, events: list[Event], *, lease: float, max_deliveries: int
) -> History:
    """The log with what the store says of each id in the end."""
    ids = {e["id"] for e in events if "id" in e}
    dead = {d.message.task_id: d.reason for d in transport.operators.dead_letters(limit=10_000)}
    final = {i: transport.results.state(i) for i in ids}
    states = {i: s.value for i, s in final.items() if s is not None}
    return History(events, states, dead, lease=lease, max_deliveries=max_deliveries)


def integrity(database: Path) -> list[Violation]:
    """I12: the file is sound, and nothing of a message is left where none is."""
    found = []
    connection = sqlite3.connect(database)
    try:
        said = connection.execute("PRAGMA integrity_check").fetchall()
        if said != [("ok",)]:
            found.append(Violation("I12", "", 0.0, f"integrity_check: {said}"))
        for table in ("message", "ready", "scheduled", "reserved", "blocked", "holder"):
            (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            if count:
                found.append(Violation("I12", "", 0.0, f"{count} rows left in {table}"))
    finally:
        connection.close()
    return found


def expect_none(found: Found) -> None:
    """Fail with the seed and what happened to the first ids that were wronged."""
    if found.violations:
        where = f"seed {found.seed}, all is in {found.directory}"
        pytest.fail(f"{where}: {told(found.history, found.violations)}", pytrace=False)


def told(history: History, violations: list[Violation]) -> str:
    """Violations for people, with the timelines of the first ids."""
    lines = [f"{len(violations)} violations"]
    lines += [f"  {v.invariant} {v.id} at {v.t:.6f}: {v.what}" for v in violations[:20]]
    for task_id in list(dict.fromkeys(v.id for v in violations if v.id))[:_SHOWN]:
        lines += ["", f"{task_id}:", *timeline(history, task_id)]
    return "\n".join(lines)


def timeline(history: History, task_id: str) -> list[str]:
    """All that was said of a message, with what the nemesis did meanwhile."""
    mine = [e for e in history.events if e.get("id") == task_id]
    if not mine:
        return []
    first, last = mine[0]["t"], mine[-1]["t"] + LEASE
    pids = {e["pid"] for e in mine} | {e["supervisor"] for e in mine if "supervisor" in e}
    deeds = [e for e in history.events if e.get("victim") in pids and first <= e["t"] <= last]
    lines = []
    for event in sorted([*mine, *deeds], key=lambda e: e["t"]):
        rest = {k: v for k, v in event.items() if k not in ("t", "pid", "ev", "id")}
        lines.append(f"  {event['t']:.6f} [{event['pid']}] {event['ev']} {rest}")
    state = history.final.get(task_id)
    return [*lines, f"  in the store: {state}, dead letter: {history.dead.get(task_id)}"]
