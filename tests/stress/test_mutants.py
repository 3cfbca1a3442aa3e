"""The checker finds each of four faults in the real engine, by the invariant that names it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stress.performance import perform

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for children in /proc")

KILLS = {"child": 80, "supervisor": 20, "stop": 0, "term": 0, "producer": 0}
STOPS = {"child": 0, "supervisor": 0, "stop": 100, "term": 0, "producer": 0}


@pytest.mark.parametrize(
    ("mutant", "invariant", "nemesis"),
    [
        # Who dies takes along what it had in hand.
        ("ack-before-run", "I1", {"seconds": 1.0, "kills": 8, "weights": KILLS}),
        # Who comes back late finds that another one has finished for it.
        (
            "ack-without-token",
            "I3",
            {"seconds": 0.0, "kills": 0, "stops": 1, "weights": STOPS, "until_overtaken": True},
        ),
        # These need nobody's help, only work.
        ("early-reaper", "I4", {"seconds": 1.0, "kills": 2}),
        ("select-then-update", "I4", {"seconds": 1.0, "kills": 2}),
    ],
    ids=["ack-before-run", "ack-without-token", "early-reaper", "select-then-update"],
)
def test_a_broken_engine_is_found_out(
    tmp_path: Path, mutant: str, invariant: str, nemesis: dict[str, Any]
) -> None:
    found = perform(tmp_path, 1, mutant=mutant, **nemesis)

    assert invariant in found.invariants(), found.violations
