"""An idle prefork worker: submit to start, also after 2 s of silence, and submit to `get()`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.benchmark(group="idle"), pytest.mark.timeout(900)]


def test_idle_latency(figures: Callable[[str], dict[str, float]]) -> None:
    found = figures("idle")

    # It started before its result was there, on one clock.
    assert 0 < found["start p50"] < found["get p50"]
