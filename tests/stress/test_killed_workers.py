"""Real workers, producers and tasks on one file under a seeded nemesis: I1 to I8 and I12 hold."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.stress.performance import KILLS, expect_none, perform

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")

SEEDS = (1, 2, 3, 4, 5)
NIGHTLY = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(6, 106)]


@pytest.mark.parametrize("seed", [*SEEDS, *NIGHTLY])
def test_killed_stopped_and_terminated_processes_break_no_invariant(
    tmp_path: Path, seed: int
) -> None:
    found = perform(tmp_path, seed)

    expect_none(found)
    # A run without much to check would prove nothing.
    assert found.nemesis.kills >= KILLS
    ended = [s for s in found.history.stories.values() if s.finished()]
    assert len(ended) >= 50
