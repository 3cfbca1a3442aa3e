"""A real worker drains 20,000 no-ops that were there before it started."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.benchmark(group="drain"), pytest.mark.timeout(900)]


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_drain(figures: Callable[[str], dict[str, float]], pool: str) -> None:
    assert figures(f"drain-{pool}")["rate"] > 0
