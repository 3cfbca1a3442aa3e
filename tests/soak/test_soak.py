"""No-op tasks for hours: memory, descriptors, the log and the database stay as large as they were.

    TASKMQ_SOAK_TASKS=1000000 pytest -m nightly tests/soak -s

Results are stored, and swept two seconds later: what is shown to be flat is the database of a system whose
results go as fast as they come. With the default retention it holds a day of results and is then flat too.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import pytest

from tests.soak.flatness import MIB, Sample, child_growths, complaints, grown
from tests.soak.running import Soak

_TASKS = int(os.environ.get("TASKMQ_SOAK_TASKS", "1000000"))


def test_a_short_run_recycles_its_children_and_is_flat(tmp_path: Path) -> None:
    samples = Soak(folder=tmp_path, tasks=5_000, per_child=500, look_every=0.02).run()

    assert _children(samples) >= 6
    assert complaints(samples, long_lived=False) == []


@pytest.mark.nightly
@pytest.mark.timeout(6 * 3600)
def test_a_million_tasks_leave_memory_descriptors_log_and_database_flat(tmp_path: Path) -> None:
    per_child = max(500, min(10_000, _TASKS // 20))
    samples = Soak(folder=tmp_path, tasks=_TASKS, per_child=per_child, look_every=0.2).run()

    _report(samples)
    assert _children(samples) >= _TASKS // per_child // 2
    assert complaints(samples, long_lived=per_child >= 5_000) == []


def _children(samples: list[Sample]) -> int:
    return len({pid for sample in samples for pid in sample.children})


def _report(samples: list[Sample]) -> None:
    """A table of the run, for `-s`."""
    print("\n      done  producer  coordinator  tree MiB  descriptors  WAL MiB  database MiB")
    for n in range(11):
        s = samples[(len(samples) - 1) * n // 10]
        print(
            f"{s.done:10,} {s.producer / MIB:9.1f} {s.coordinator / MIB:12.1f} {s.tree / MIB:9.1f} "
            f"{s.descriptors:12} {s.wal / MIB:8.1f} {s.database / MIB:13.1f}"
        )
    lives = child_growths(samples)
    growth = statistics.median(lives) / MIB if lives else 0.0
    print(f"{_children(samples)} children; one grows by {growth:.1f} MiB in its life (median)")
    print("grown between the windows:", {k: f"{v:,}" for k, v in grown(samples).items()})
