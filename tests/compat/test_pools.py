"""The pool that a project's settings name."""

from __future__ import annotations

from typing import Any

import pytest

from taskmq.compat import Celery
from taskmq.config import Config


def config_and_notes(**settings: Any) -> tuple[Config, list[str]]:
    app = Celery(set_as_current=False, broker="memory://pools", **settings)
    return app.engine.config, [line for ask in app.engine.hooks.advisers for line in ask()]


@pytest.mark.parametrize(
    ("given", "pool"),
    [
        ("prefork", "prefork"),
        ("processes", "prefork"),
        ("SOLO", "solo"),
        ("threads", "threads"),
        ("asyncio", "asyncio"),
        ("celery.concurrency.thread:TaskPool", "threads"),
        ("celery.concurrency.prefork.TaskPool", "prefork"),
    ],
)
def test_pool_of_the_settings_is_the_workers(given: str, pool: str) -> None:
    config, notes = config_and_notes(worker_pool=given)

    assert (config.pool, notes) == (pool, [])


@pytest.mark.parametrize("given", ["gevent", "celery.concurrency.eventlet:TaskPool"])
def test_pool_of_green_threads_is_one_of_threads_and_said(given: str) -> None:
    config, notes = config_and_notes(worker_pool=given, worker_concurrency=100)

    assert (config.pool, config.concurrency) == ("threads", 100)
    assert "a worker started without -P uses threads" in notes[0]


@pytest.mark.parametrize("given", ["proj.pool:MyPool", "thread s", 5, None])
def test_pool_there_is_none_of_is_said_and_the_default_stays(given: Any) -> None:
    config, notes = config_and_notes(worker_pool=given)

    assert config.pool == "prefork"
    assert [note.startswith("setting worker_pool has no effect") for note in notes] == (
        [] if given is None else [True]
    )


@pytest.mark.parametrize(
    ("given", "method", "noted"),
    [("spawn", "spawn", False), ("fork", "fork", False), ("forkserver", None, True)],
)
def test_start_method(given: str, method: str | None, noted: bool) -> None:
    config, notes = config_and_notes(worker_pool_start_method=given)

    assert config.start_method == method
    assert bool(notes) is noted


def test_defaults_of_celery_are_not_taken_for_a_choice() -> None:
    config, notes = config_and_notes()

    assert (config.pool, config.start_method, notes) == ("prefork", None, [])


def test_remote_control_is_turned_off_in_the_worker_too() -> None:
    assert config_and_notes()[0].remote_control is True
    assert config_and_notes(worker_enable_remote_control=False)[0].remote_control is False
