"""A small shop whose app the command line loads, on a transport in memory and a clock that stands."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from taskmq.app import App
from taskmq.cli.main import main
from taskmq.clock import FakeClock
from taskmq.config import Config, QueueConfig
from taskmq.priority import Priority
from taskmq.transports.memory import MemoryTransport


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


@pytest.fixture
def shop(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> App:
    app = App(
        Config(broker_url="memory://", queues={"email": QueueConfig(weight=3)}),
        name="shop",
        clock=clock,
        transport=MemoryTransport(clock=clock),
    )

    @app.task(name="shop.send_email", queue="email", priority=Priority.HIGH)
    def send_email(to: str) -> str:
        return f"sent to {to}"

    @app.task(name="shop.report")
    def report(month: str = "May") -> str:
        return month

    module = ModuleType("cli_shop")
    module.app = app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cli_shop", module)
    return app


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
