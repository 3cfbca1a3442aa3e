"""Settle k and reserve k in one transaction, as a worker's loop does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from taskmq.message import Delivery
from tests.benchmarks.bench_sqlite import Bench

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = pytest.mark.benchmark(group="turn")

_ROUNDS = 500


@pytest.mark.parametrize("slots", [1, 8, 32])
def test_reserve_and_ack_in_one_turn(
    tmp_path: Path, benchmark: BenchmarkFixture, slots: int
) -> None:
    bench = Bench(tmp_path / "bench.db", queues=1)
    bench.fill((_ROUNDS + 60) * slots)
    held: list[Delivery] = list(bench.transport.reserve(bench.request(slots)))

    def turn() -> None:
        outcomes = [bench.finish(delivery) for delivery in held]
        held[:] = bench.transport.turn(outcomes, bench.request(slots)).deliveries
        assert len(held) == slots

    try:
        benchmark.pedantic(turn, rounds=_ROUNDS, warmup_rounds=50)
    finally:
        bench.transport.close()
