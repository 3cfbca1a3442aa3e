"""Import, start, idle CPU and peak memory of a prefork worker with two children."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.benchmark(group="footprint"), pytest.mark.timeout(900)]


def test_import_time(figures: Callable[[str], dict[str, float]]) -> None:
    found = figures("import")

    assert found["package"] < found["names"]


def test_worker_ready_time(figures: Callable[[str], dict[str, float]]) -> None:
    assert figures("ready")["first start"] > 0


def test_idle_cpu(figures: Callable[[str], dict[str, float]]) -> None:
    assert figures("cpu")["share"] < 100


def test_peak_memory_of_the_whole_tree(figures: Callable[[str], dict[str, float]]) -> None:
    found = figures("memory")

    # A page shared by three processes counts three times in the first and once in the second.
    assert 0 < found["pss"] < found["rss"]
