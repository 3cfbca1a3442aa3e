"""What one `delay()` costs a producer, and a call in a batch of a hundred."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskmq import App

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = pytest.mark.benchmark(group="submit")


def test_one_delay(app: App, benchmark: BenchmarkFixture) -> None:
    @app.task
    def noop() -> None: ...

    noop.delay()
    benchmark.pedantic(noop.delay, rounds=2_000, warmup_rounds=100)


def test_a_hundred_in_one_call(app: App, benchmark: BenchmarkFixture) -> None:
    @app.task
    def noop() -> None: ...

    calls = [noop.s() for _ in range(100)]
    benchmark.pedantic(app.submit_many, args=(calls,), rounds=100, warmup_rounds=5)
