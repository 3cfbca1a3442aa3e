"""A SQLite transport on a file of its own, and a bench with short words for its verbs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from taskmq.testing.conformance.bench import Bench
from taskmq.transports.base import Settings
from taskmq.transports.sqlite import SQLiteTransport
from taskmq.transports.sqlite.options import SQLiteOptions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
def bench(path: Path) -> Iterator[Bench]:
    numbers = count()

    def make(clock, random, **settings):
        file = path.with_name(f"{next(numbers)}-{path.name}")
        options = settings.pop("options", None) or SQLiteOptions()
        return SQLiteTransport(
            file, Settings(**settings), clock=clock, random=random, options=options
        )

    bench = Bench(make)
    yield bench
    bench.close()


@pytest.fixture
def transport(path: Path) -> Iterator[SQLiteTransport]:
    transport = SQLiteTransport(path)
    transport.open()
    yield transport
    transport.close()
