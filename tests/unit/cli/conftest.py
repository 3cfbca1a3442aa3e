"""A small shop whose app the command line loads, on either transport and with a clock that stands."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from taskmq.app import App
from taskmq.cli.main import main
from taskmq.clock import FakeClock
from taskmq.config import Config, QueueConfig
from taskmq.priority import Priority
from taskmq.stores import transport_settings
from taskmq.transports.urls import open_transport


@dataclass(frozen=True)
class Answer:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Run = Callable[..., Answer]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_900_000_000.0)


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The `broker_url` of the shop; every test that uses the shop runs once on each."""
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/shop.db"


@pytest.fixture
def shop(url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    config = Config(broker_url=url, queues={"email": QueueConfig(weight=3)})
    transport = open_transport(url, transport_settings(config), clock=clock, random=Random(1))
    # Given to the app, so that a command closing the app does not empty a store in memory.
    app = App(config, name="shop", clock=clock, transport=transport)

    @app.task(name="shop.send_email", queue="email", priority=Priority.HIGH)
    def send_email(to: str) -> str:
        return f"sent to {to}"

    @app.task(name="shop.report")
    def report(month: str = "May") -> str:
        return month

    module = ModuleType("cli_shop")
    module.app = app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cli_shop", module)
    yield app
    app.close()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line as `main` does, without an application."""
    for name in ("TASKMQ_APP", "TASKMQ_AS_CELERY", "TASKMQ_BROKER_URL"):
        # Empty and not deleted, so that what a command sets is taken back after the test.
        monkeypatch.setenv(name, "")

    def call(*arguments: str) -> Answer:
        capsys.readouterr()
        code = main(arguments)
        out, err = capsys.readouterr()
        return Answer(code, out, err)

    return call


@pytest.fixture
def taskmq(run: Run, shop: App) -> Run:
    """Run the command line on the shop."""
    return lambda *arguments: run("-A", "cli_shop", *arguments)


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """A worker command sets logging up for its process, which here is that of the tests."""
    root = logging.getLogger()
    named = [root, logging.getLogger("taskmq"), logging.getLogger("taskmq.task")]
    handlers, levels = root.handlers[:], [log.level for log in named]
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    for log, level in zip(named, levels, strict=True):
        log.setLevel(level)
