"""Several processes on one SQLite file, consumers killed at random: nothing lost, nothing doubled."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from random import Random

import pytest

from taskmq.states import State
from tests.stress import checker
from tests.stress.actors import LEASE, MAX_DELIVERIES, open_transport
from tests.support.processes import Processes, processes
from tests.support.waiting import wait_until

ACTORS = Path(__file__).parent / "actors.py"
PRODUCERS = 2
MESSAGES = 400
CONSUMERS = 3
KILLS = 16
# Lines a consumer writes before it may be killed: enough to hold something at almost any moment.
LINES = 250


class Stage:
    """Starts the actors and kills them."""

    def __init__(self, started: Processes, directory: Path, seed: int) -> None:
        self.started = started
        self.directory = directory
        self.seed = seed
        self.number = 0

    def actor(self, role: str, extra: str) -> tuple[subprocess.Popen[str], Path]:
        self.number += 1
        arguments = [role, str(self.directory), str(self.number), str(self.seed), extra]
        process = self.started.run([sys.executable, str(ACTORS), *arguments], name=role)
        return process, self.directory / f"{role}-{self.number}.jsonl"

    def consumer(self) -> tuple[subprocess.Popen[str], Path]:
        return self.actor("consumer", "stop")


def lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


NIGHTLY = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 42)]


def wrote_or_done(log: Path, enough: int, producers: list[subprocess.Popen[str]]) -> bool:
    return lines(log) >= enough or all(p.poll() is not None for p in producers)


@pytest.mark.parametrize("seed", [1, *NIGHTLY])
def test_killed_consumers_lose_nothing_and_double_nothing(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    open_transport(tmp_path / "stress.db").close()
    with processes(tmp_path) as started:
        stage = Stage(started, tmp_path, seed)
        producers = [stage.actor("producer", str(MESSAGES))[0] for _ in range(PRODUCERS)]
        consumers = [stage.consumer() for _ in range(CONSUMERS)]
        killed = 0
        while killed < KILLS:
            victim = random.randrange(CONSUMERS)
            process, log = consumers[victim]
            enough = max(1, lines(log) + random.randrange(LINES))
            # Once everything is done a consumer writes no more, and there is nothing left to kill it at.
            wait_until(partial(wrote_or_done, log, enough, producers), 20, what="a consumer's work")
            process.send_signal(signal.SIGKILL)
            process.wait(10)
            killed += 1
            consumers[victim] = stage.consumer()
        for producer in producers:
            assert producer.wait(20) == 0, started.log(producer)
        (tmp_path / "stop").touch()
        for process, _ in consumers:
            assert process.wait(20) == 0, started.log(process)

    events = checker.read_logs(tmp_path)
    ended = reconcile(tmp_path / "stress.db", events)
    assert len(checker.of_kind(events, "accepted")) >= PRODUCERS * MESSAGES
    assert checker.lost(events, ended) == []
    assert checker.unheard_of(events) == []
    assert checker.acked_twice(events) == []
    assert checker.claimed_after_ack(events) == []
    assert checker.overlapping(events) == []
    assert checker.too_early(events) == []
    assert checker.delivered_too_often(events, MAX_DELIVERIES) == []
    assert checker.passed_over(events, LEASE) == []


def reconcile(database: Path, events: list[checker.Event]) -> set[str]:
    """The ids that ended, after checking that the store is empty and sound."""
    transport = open_transport(database)
    try:
        assert transport.operators.depth() == []
        names = [e["id"] for e in checker.of_kind(events, "accepted")]
        done = {n for n in names if transport.results.state(n) is State.SUCCEEDED}
        dead = {d.message.task_id: d for d in transport.operators.dead_letters(limit=10_000)}
        assert all(letter.reason == "crash-loop" for letter in dead.values())
        assert not done & set(dead)
    finally:
        transport.close()
    connection = sqlite3.connect(database)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        # Rows without a message, and messages without a row, would show here.
        (count,) = connection.execute("SELECT count(*) FROM message").fetchone()
        assert count == 0
    finally:
        connection.close()
    return done | set(dead)
