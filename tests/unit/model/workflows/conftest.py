"""The tasks the workflow tests are made of, on every transport."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskmq import App, Priority, QueueConfig
from tests.unit.model.conftest import AppMaker
from tests.unit.model.runner import Runner


class Tasks:
    """The tasks of these tests, and what was told to the callbacks."""

    def __init__(self, app: App) -> None:
        self.told: list[Any] = []

        @app.task(name="add")
        def add(a: int, b: int) -> int:
            return a + b

        @app.task(name="total", priority=Priority.LOW)
        def total(values: list[int]) -> int:
            return sum(values)

        @app.task(name="fail")
        def fail(*args: object) -> None:
            raise ValueError("boom")

        @app.task(name="tell")
        def tell(*args: object) -> None:
            self.told.append(args)

        self.app = app
        self.add, self.total, self.fail, self.tell = add, total, fail, tell


@pytest.fixture(params=["memory", "sqlite"])
def app(make_app: AppMaker, tmp_path: Path, request: pytest.FixtureRequest) -> App:
    """Each transport applies what follows a step in its own way, to the same end."""
    queues = {"fast": QueueConfig(priority=4)}
    if request.param == "memory":
        return make_app(queues=queues)
    return make_app(queues=queues, broker_url=f"sqlite:///{tmp_path}/jobs.db")


@pytest.fixture
def tasks(app: App) -> Tasks:
    return Tasks(app)


@pytest.fixture
def runner(app: App) -> Runner:
    return Runner(app, "default", "fast", "other")
