"""Apps on each transport with a virtual clock, and workers that run when told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import taskmq.testing
from taskmq.app import App

MakeApp = Callable[..., App]


@pytest.fixture(params=["memory", "sqlite"])
def make_app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeApp]:
    """Makes an app on the transport of this run; all are closed at the end."""
    made: list[App] = []

    def make(**settings: Any) -> App:
        if request.param == "sqlite":
            settings.setdefault("broker_url", f"sqlite:///{tmp_path / f'{len(made)}.db'}")
        app = taskmq.testing.app(**settings)
        made.append(app)
        return app

    yield make
    for app in made:
        app.close()
