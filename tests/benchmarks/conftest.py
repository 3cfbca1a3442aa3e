"""What the benchmark modules share. They run with `pytest -m benchmark tests/benchmarks`, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taskmq import App
from tests.benchmarks.peers import PEERS
from tests.benchmarks.running import measure

Figures = dict[str, float]


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[[str], Figures]:
    """Measures a row of the comparison for TaskMQ alone and notes its figures as extra information.

    The time that pytest-benchmark prints for these is that of the whole measurement.
    """

    def run(row: str) -> Figures:
        benchmark = request.getfixturevalue("benchmark")
        found: Figures = benchmark.pedantic(
            measure, args=(row, PEERS["taskmq"]), rounds=1, iterations=1
        )
        benchmark.extra_info.update(found)
        print("\n" + "  ".join(f"{key} {value:.4g}" for key, value in found.items()))
        return found

    return run


@pytest.fixture(params=["", "?durability=full"], ids=["default", "durability-full"])
def app(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[App]:
    """An application on a new SQLite file; no worker."""
    with App(broker_url=f"sqlite:///{tmp_path}/bench.db{request.param}") as made:
        yield made
