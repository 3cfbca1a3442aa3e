"""Apps of the model's tests: memory transport, a clock that stands still, seeded randomness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from taskmq import App
from taskmq.clock import FakeClock
from taskmq.transports.memory import MemoryTransport

AppMaker = Callable[..., App]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def make_app(clock: FakeClock) -> Iterator[AppMaker]:
    """Makes apps on transports of their own and closes them at the end."""
    made: list[App] = []

    def make(*args: Any, **settings: Any) -> App:
        settings.setdefault("clock", clock)
        settings.setdefault("random", Random(7))
        if "broker_url" not in settings:
            settings.setdefault("transport", MemoryTransport(clock=settings["clock"]))
        app = App(*args, **settings)
        made.append(app)
        return app

    yield make
    for app in made:
        app.close()


@pytest.fixture
def app(make_app: AppMaker) -> App:
    return make_app()
