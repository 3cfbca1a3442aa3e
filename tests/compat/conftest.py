"""A Celery app in memory on a virtual clock, in a process state of its own for every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import Random
from typing import Any
from weakref import WeakSet

import pytest

from taskmq import testing
from taskmq.clock import FakeClock
from taskmq.compat import Celery, _state
from taskmq.testing import VirtualWorker
from tests.compat.noted import hear

MakeApp = Callable[..., Celery]
MakeWorker = Callable[..., VirtualWorker]


@pytest.fixture(autouse=True)
def own_process_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """No app, no shared task and no environment of another test."""
    monkeypatch.setattr(_state, "_process", _state._Process())
    monkeypatch.setattr(_state, "_apps", WeakSet())
    for name in ("CELERY_BROKER_URL", "CELERY_RESULT_BACKEND", "TASKMQ_BROKER_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def make_app(request: pytest.FixtureRequest) -> Iterator[MakeApp]:
    """Makes Celery apps whose messages are in a memory store of this test."""
    made: list[Celery] = []

    def make(main: str | None = "proj", **settings: Any) -> Celery:
        settings.setdefault("broker", f"memory://{abs(hash(request.node.nodeid))}-{len(made)}")
        app = Celery(main, clock=FakeClock(), random=Random(0), **settings)
        made.append(app)
        return app

    yield make
    for app in made:
        app.close()


@pytest.fixture
def app(make_app: MakeApp) -> Celery:
    """One such app."""
    return make_app()


@pytest.fixture
def make_worker() -> Iterator[MakeWorker]:
    """Makes virtual workers of Celery apps."""
    with ExitStack() as stack:

        def make(app: Celery, **options: Any) -> VirtualWorker:
            return stack.enter_context(testing.worker(app.engine, **options))

        yield make


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What the signals of a run were sent with, in order."""
    return hear(monkeypatch)
