"""The checker finds each of four faults in the real engine, by the invariant that names it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.stress.nemesis import WEIGHTS
from tests.stress.performance import perform

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")

# A stale ack needs holders that outlive their lease; a lost one needs those that die with a task in hand.
STOPS = {"child": 15, "supervisor": 0, "stop": 85, "term": 0, "producer": 0}
KILLS = {"child": 80, "supervisor": 20, "stop": 0, "term": 0, "producer": 0}


@pytest.mark.parametrize(
    ("mutant", "invariant", "weights", "kills"),
    [
        ("ack-before-run", "I1", KILLS, 8),
        ("ack-without-token", "I3", STOPS, 1),
        ("early-reaper", "I4", WEIGHTS, 3),
        ("select-then-update", "I4", WEIGHTS, 3),
    ],
)
def test_a_broken_engine_is_found_out(
    tmp_path: Path, mutant: str, invariant: str, weights: Mapping[str, int], kills: int
) -> None:
    found = perform(tmp_path, 1, mutant=mutant, seconds=2.0, kills=kills, weights=weights)

    assert invariant in found.invariants(), found.violations
