"""Ten thousand calls of every kind on two workers that are stopped, killed and started meanwhile."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from taskmq import App
from taskmq.compat.states import celery_state
from taskmq.states import State
from tests.acceptance.conftest import MakeProject, Project
from tests.support.waiting import wait_until

CALLS = 10_000
OPTIONS = ("-c", "2", "-Q", "celery,mail", "-l", "WARNING")

# How each kind of call ends: state, runs without any accident, and the value it returns.
ENDS: dict[str, tuple[str, Any, Any]] = {
    "ship": ("SUCCESS", lambda n: 1, lambda n: n * 2),
    "refuse": ("FAILURE", lambda n: 1, None),
    "unsteady": ("SUCCESS", lambda n: 1 + n % 3, lambda n: [n, n % 3]),
    "unreachable": ("FAILURE", lambda n: 2, None),
    "remind": ("SUCCESS", lambda n: 1, lambda n: [n, n % 19 - 9]),
    "expired": ("REVOKED", lambda n: 0, None),
    "forget": ("PENDING", lambda n: 1, None),
}


def lines(ledger: Path) -> list[str]:
    """What the tasks wrote down."""
    return ledger.read_text().splitlines() if ledger.exists() else []


def wait_for_runs(project: Project, count: int) -> None:
    ledger = project.home / "ledger.txt"
    wait_until(lambda: len(lines(ledger)) >= count, 90, every=0.05, what=f"{count} runs")


@pytest.mark.skipif(sys.platform == "win32", reason="prefork")
@pytest.mark.timeout(300)
def test_ten_thousand_mixed_calls_all_end_as_they_should(make_unedited: MakeProject) -> None:
    project = make_unedited("mixed")
    one = project.worker("shop", *OPTIONS, name="one")
    two = project.worker("shop", *OPTIONS, name="two")
    client = project.script("client.py", str(CALLS))

    # A deploy: one worker after the other is told to stop and a new one started.
    wait_for_runs(project, 500)
    one.send_signal(signal.SIGTERM)
    assert one.wait(timeout=60) == 0, project.started.log(one)
    one = project.worker("shop", *OPTIONS, name="one-again")
    wait_for_runs(project, 2_000)
    # An accident: the other is killed with what it runs.
    two.kill()
    two.wait(timeout=30)
    two = project.worker("shop", *OPTIONS, name="two-again")
    wait_for_runs(project, 4_000)
    one.send_signal(signal.SIGTERM)
    assert one.wait(timeout=60) == 0, project.started.log(one)
    one = project.worker("shop", *OPTIONS, name="one-at-last")

    assert client.wait(timeout=120) == 0, project.started.log(client)
    calls = [json.loads(line) for line in project.started.log(client).splitlines()]
    assert len(calls) == CALLS
    with App(broker_url=f"sqlite:///{project.database}") as app:
        wait_until(lambda: nothing_waits(app), 120, every=0.2, what="an empty store")
        ends = {task_id: end_of(app, task_id) for _, _, task_id in calls}
    for worker in (one, two):
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=60) == 0, project.started.log(worker)

    wrong = []
    for kind, number, task_id in calls:
        state, _, value_of = ENDS[kind]
        expected = (state, value_of(number) if value_of else None)
        if ends[task_id] != expected:
            wrong.append((kind, number, task_id, ends[task_id], expected))
    assert not wrong, wrong[:10]

    # Each ran as often as its kind says. Only what the killed worker held may have run once more: two
    # were running, and as many may have ended without their ending being stored.
    ran = Counter(lines(project.home / "ledger.txt"))
    due: Counter[str] = Counter()
    for kind, number, _ in calls:
        name = "ship" if kind == "expired" else kind
        due[f"{name} {number}"] += ENDS[kind][1](number)
    missing, more = due - ran, ran - due
    assert not missing, dict(list(missing.items())[:10])
    assert more.total() <= 4, dict(more)


def nothing_waits(app: App) -> bool:
    """Whether no message is left, waiting or running."""
    return all(
        not (d.ready or d.scheduled or d.reserved or d.running or d.blocked)
        for d in app.transport.operators.depth()
    )


def end_of(app: App, task_id: str) -> tuple[str, Any]:
    """How a task ended: its Celery state, and its value where it has one."""
    record = app.results.get(task_id)
    if record is None:
        return celery_state(app.state(task_id)), None
    value = app.codec.decode_value(record.body) if record.state is State.SUCCEEDED else None
    return celery_state(record.state), value
