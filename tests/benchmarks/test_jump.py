"""Urgent tasks into a backlog of 3,000 naps of 20 ms on four slots."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.benchmark(group="jump"), pytest.mark.timeout(900)]


@pytest.mark.parametrize("prefetch", [4, 16])
def test_queue_jump(figures: Callable[[str], dict[str, float]], prefetch: int) -> None:
    found = figures(f"jump-{prefetch}")

    # 3,000 naps take 15 s: one that waited for the backlog would have waited for hundreds of them.
    assert found["max"] < 50
