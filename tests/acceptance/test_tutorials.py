"""Unmodified Celery tutorial projects, under the alias and with the import swapped.

The expected values are what the same files print on Celery 5.7 with Redis.
"""

from __future__ import annotations

import re
import signal
import sys

import pytest

from tests.acceptance.conftest import MakeProject
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="prefork"),
    pytest.mark.timeout(120),
]


def test_first_steps(make_project: MakeProject) -> None:
    project = make_project("first_steps")
    worker = project.worker("tasks", "--loglevel=INFO", "-c", "2")

    told = project.told(project.script("client.py"), timeout=60)
    worker.send_signal(signal.SIGTERM)

    assert told == {
        "value": 8,
        "ready": True,
        "successful": True,
        "state": "SUCCESS",
        "direct": 5,
        "name": "tasks.add",
    }
    assert worker.wait(timeout=30) == 0


def test_next_steps(make_project: MakeProject) -> None:
    project = make_project("next_steps")
    worker = project.worker("proj", "-l", "INFO", "-c", "2", "-Q", "celery,more")

    told = project.told(project.script("client.py"), timeout=90)
    worker.send_signal(signal.SIGTERM)

    ids = told.pop("ids")
    assert told == {
        "delay": 4,
        "by id": [4, "SUCCESS"],
        "countdown": 4,
        "eta": 9,
        "error": "ZeroDivisionError",
        "failed": ["FAILURE", True, False, True],
        "raised": "division by zero",
        "expired": ["TaskRevokedError", "REVOKED"],
        "retried": 2,
        "worn out": "ConnectionError",
        "gave up": "KeyError",
        "request": {
            "task": "proj.more.who",
            "retries": 0,
            "routing_key": "more",
            "called_directly": False,
            "args": [],
            "kwargs": {},
            "hostname": True,
        },
        "same id": True,
        "send_task": 11,
        "chain": 64,
        "pipe": 21,
        "group": [0, 2, 4, 6, 8],
        "chord": 20,
        "link": 4,
        "soft limit": "stopped",
        "own state": ["HALTED", {"done": 3}],
    }
    notes = (project.home / f"{ids['worn out']}.notes").read_text().splitlines()
    assert notes == [
        "retry ConnectionError",
        "retry ConnectionError",
        "failure ConnectionError",
        "after FAILURE",
    ]
    assert worker.wait(timeout=30) == 0


def test_script_that_is_its_own_worker_and_tasks_that_come_to_a_bad_end(
    make_project: MakeProject,
) -> None:
    project = make_project("accidents")
    worker = project.script("tasks.py", name="worker")

    told = project.told(project.script("client.py"), timeout=90)
    # Each of the three cost a child, which is replaced at once.
    ledger = project.home / "notes.txt"
    wait_until(lambda: ledger.read_text().splitlines().count("child") == 5, 30, what="5 children")
    worker.send_signal(signal.SIGTERM)

    assert told == {
        "die": ["WorkerLostError", "FAILURE"],
        "slow": ["TimeLimitExceeded", "FAILURE"],
        "sleepy": ["TaskRevokedError", "REVOKED"],
    }
    assert worker.wait(timeout=30) == 0, project.started.log(worker)
    # Once each: the script is the module that `-A` names, not a second one.
    notes = ledger.read_text().splitlines()
    assert [note for note in notes if not note.startswith(("child", "running"))] == [
        "ready tasks",
        "failure tasks.die WorkerLostError [7]",
        "failure tasks.slow TimeLimitExceeded []",
        "revoked tasks.sleepy True",
        "shutdown",
    ]


def test_project_with_a_schedule_and_error_callbacks(make_project: MakeProject) -> None:
    project = make_project("periodic")
    worker = project.worker("news", "-l", "INFO", "-c", "2")

    told = project.told(project.script("client.py"), timeout=90)
    worker.send_signal(signal.SIGTERM)

    assert told == {
        "sent": "sent now",
        "error": "LookupError('this', 4)",
        "notes": [
            "explain ID news.tasks.refuse ['this'] {'code': 4} LookupError('this', 4) True",
            "explain_to ID LookupError ann True",
            "tell ID True",
        ],
        "entries": ["digest", "night", "often", "rarely"],
        "digest": "<crontab: 30 7 * * mon-fri (m/h/dM/MY/d)>",
        "due": [False, 217800.0],
    }
    assert worker.wait(timeout=30) == 0
    log = project.started.log(worker)
    assert "4 periodic tasks will not run (digest, often, rarely, …)" in log
    assert "pool       threads" in log
    assert re.search(r"news\.tasks: news\.tasks\.send\[[0-9a-f-]{36}\]: sending now", log)
