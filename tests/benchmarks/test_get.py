"""Submit to `get()` of one no-op, in each pool: the round trip that a caller waits for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.peers import PEERS, Project

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = pytest.mark.benchmark(group="get")


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_submit_to_get(tmp_path: Path, benchmark: BenchmarkFixture, pool: str) -> None:
    project = Project(PEERS["taskmq"], tmp_path).open()
    noop = project.delay("noop")

    with project.worker(pool, 1 if pool == "solo" else 2):
        benchmark.pedantic(lambda: noop().get(timeout=30), rounds=300, warmup_rounds=20)
