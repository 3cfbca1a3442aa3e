"""Several processes on one SQLite file, consumers killed at random: nothing lost, nothing doubled."""

from __future__ import annotations

import signal
import subprocess
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.stress.actors import LEASE, MAX_DELIVERIES, open_transport
from tests.stress.invariants import check
from tests.stress.log import Log, read_logs
from tests.stress.performance import integrity, reconciled, told
from tests.stress.troupe import ROOT
from tests.support.processes import Processes, processes
from tests.support.waiting import wait_until

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
        process = self.started.python(
            "-m", "tests.stress.actors", *arguments, env={"PYTHONPATH": str(ROOT)}, name=role
        )
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
    nemesis = Log(tmp_path / "nemesis.jsonl")
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
            nemesis.write("killed", victim=process.pid, role="consumer")
            killed += 1
            consumers[victim] = stage.consumer()
        for producer in producers:
            assert producer.wait(20) == 0, started.log(producer)
        (tmp_path / "stop").touch()
        for process, _ in consumers:
            assert process.wait(20) == 0, started.log(process)
    nemesis.close()

    events = read_logs(tmp_path)
    transport = open_transport(tmp_path / "stress.db")
    assert transport.operators.depth() == []
    history = reconciled(transport, events, lease=LEASE, max_deliveries=MAX_DELIVERIES)
    transport.close()
    assert sum(s.accepted is not None for s in history.stories.values()) >= PRODUCERS * MESSAGES
    violations = [*check(history), *integrity(tmp_path / "stress.db")]
    assert not violations, told(history, violations)
