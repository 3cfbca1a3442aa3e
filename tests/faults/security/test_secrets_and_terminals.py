"""Arguments are told to the task alone, and no terminal gets a message raw (reliability §6)."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.faults.messages.conftest import Site
from tests.support.waiting import wait_until

CANARY = "canary-4b1d-secret"
EVIL = "\x1b]0;owned\x07\n2026 CRITICAL root: pwned \x9b31m\u202e"
COMMANDS = [
    ("status",),
    ("status", "--by-priority", "--json"),
    ("peek",),
    ("peek", "--json"),
    ("dlq", "list"),
    ("dlq", "list", "--json"),
    ("events", "--no-follow"),
    ("events", "--no-follow", "--text"),
    ("list",),
]


def printed(site: Site, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "taskmq", "-A", "jobs", *arguments],
        cwd=site.folder,
        env={**os.environ, "PYTHONPATH": f"{site.folder}{os.pathsep}{Path(__file__).parents[3]}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def test_an_argument_is_in_no_log_event_traceback_or_output_and_in_the_store_only_as_the_body(
    site: Site,
) -> None:
    done = site.submit("echo", CANARY)
    done.get(timeout=20)
    failed = site.submit("fail", CANARY)
    wait_until(lambda: failed.state.final, what="the failure")
    waiting = site.submit("echo", CANARY, countdown=600)
    site.app.result(done.id).forget()

    outputs = [printed(site, *command) for command in COMMANDS]
    outputs += [printed(site, "why", waiting.id), printed(site, "why", failed.id)]

    for text in (*outputs, site.log(), *everything_stored(site.folder / "q.db")):
        assert CANARY not in text
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert CANARY.encode() not in process.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue


def everything_stored(path: Path) -> list[str]:
    """Every cell of every table but the bodies."""
    store = sqlite3.connect(path)
    tables = [
        name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type='table'")
    ]
    cells = []
    for table in tables:
        columns = [row[1] for row in store.execute(f"PRAGMA table_info({table})")]
        kept = [column for column in columns if column != "body"]
        for row in store.execute(f"SELECT {', '.join(kept)} FROM {table}"):
            cells.append(repr(row))
    store.close()
    return cells


def test_control_characters_of_a_message_reach_no_terminal_and_forge_no_log_line(
    site: Site,
) -> None:
    for task, task_id in ((f"jobs.{EVIL}", "a"), ("jobs.echo", f"b{EVIL}")):
        message = replace(site.app.message("jobs.echo"), task=task, task_id=task_id, body=b"[")
        site.app.publish([message])
    operators = site.app.transport.operators
    wait_until(lambda: len(operators.dead_letters()) == 2, 20, what="the dead letters")

    outputs = [printed(site, *command) for command in COMMANDS]
    outputs.append(printed(site, "why", f"b{EVIL}"))

    for text in (*outputs, site.log()):
        assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}
        assert not [line for line in text.splitlines() if line.startswith("2026 CRITICAL")]
    assert any("\\x1b]0;owned\\x07\\n2026 CRITICAL" in text for text in outputs)
