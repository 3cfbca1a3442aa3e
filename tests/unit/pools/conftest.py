"""Prefork pools that are stopped with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from taskmq import App
from taskmq.pools.child import ChildSettings
from taskmq.pools.prefork import PreforkPool
from tests.unit.pools.jobs import Driver

MakePool = Callable[..., Driver]


@pytest.fixture
def app() -> App:
    return App(broker_url="memory://")


@pytest.fixture
def start(app: App) -> Iterator[MakePool]:
    """Starts a prefork pool; declare the tasks before."""
    drivers: list[Driver] = []

    def make(size: int = 1, **options: Any) -> Driver:
        settings = options.pop("settings", ChildSettings())
        clock = options.pop("clock", app.clock)
        pool = PreforkPool(app, size, clock=clock, settings=settings, **options)
        pool.start()
        drivers.append(Driver(pool))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.pool.stop(hand_back=False)
