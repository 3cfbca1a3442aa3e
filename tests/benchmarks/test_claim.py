"""A reserve with a thousand to a million messages ready in ten queues."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskmq.message import Delivery
from tests.benchmarks.bench_sqlite import Bench
from tests.benchmarks.claims import QUEUES, filled

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = [pytest.mark.benchmark(group="claim"), pytest.mark.timeout(900)]


@pytest.fixture(params=[1_000, 100_000, 1_000_000], ids=["1k", "100k", "1M"])
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = filled(tmp_path / "bench.db", request.param)
    yield made
    made.transport.close()


def test_reserve_one(bench: Bench, benchmark: BenchmarkFixture) -> None:
    assert len(bench.names) == QUEUES
    request = bench.request(1)
    held: list[Delivery] = []

    def put_another_in_its_place() -> None:
        bench.transport.settle([bench.finish(delivery) for delivery in held])
        bench.transport.submit([bench.message() for _ in held])
        held.clear()

    def reserve() -> None:
        held.extend(bench.transport.reserve(request))

    benchmark.pedantic(reserve, setup=put_another_in_its_place, rounds=2_000, warmup_rounds=50)
    assert len(held) == 1
