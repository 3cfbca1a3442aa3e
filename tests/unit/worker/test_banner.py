"""The banner names, once, what is to be known of the place the messages are in."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from taskmq import App
from taskmq.pools.inline import InlinePool
from taskmq.transports.sqlite import connect
from taskmq.worker.banner import banner
from taskmq.worker.options import WorkerOptions
from taskmq.worker.rules import resolve


def lines(app: App) -> list[str]:
    rules = resolve(app.config, WorkerOptions(pool="solo"), "w1")
    try:
        return banner(app, app.transport, InlinePool(app), rules)
    finally:
        app.close()


@pytest.mark.parametrize("affected", [True, False])
def test_an_sqlite_version_with_the_wal_reset_bug_is_one_line_of_the_banner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, affected: bool
) -> None:
    monkeypatch.setattr(connect, "has_wal_reset_bug", lambda: affected)

    said = lines(App(broker_url=f"sqlite:///{tmp_path}/t.db"))

    named = [line for line in said if "WAL-reset" in line]
    assert len(named) == int(affected)
    assert all(line.startswith("  note ") and len(line) <= 100 for line in named)


def test_a_database_that_was_just_made_is_told_and_one_that_was_there_is_not(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/t.db"

    first, second = lines(App(broker_url=url)), lines(App(broker_url=url))

    assert any("has just been made" in line for line in first)
    assert not any("has just been made" in line for line in second)


def test_what_memory_cannot_do_is_told() -> None:
    assert any(
        "messages do not survive this process" in line
        for line in lines(App(broker_url="memory://"))
    )


@pytest.mark.parametrize("each_task", [True, False])
def test_who_gets_no_line_per_task_is_told_how_to_get_them(each_task: bool) -> None:
    lines_of_tasks = logging.getLogger("taskmq.task")
    before = lines_of_tasks.level
    lines_of_tasks.setLevel(logging.INFO if each_task else logging.WARNING)
    try:
        said = lines(App(broker_url="memory://"))
    finally:
        lines_of_tasks.setLevel(before)

    assert any("-l info" in line for line in said) is not each_task
