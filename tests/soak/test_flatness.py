"""The judgement over a soak: what it must not let pass, and what it must."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.soak.flatness import MIB, Sample, complaints

STEADY = Sample(
    done=0,
    producer=60 * MIB,
    coordinator=30 * MIB,
    tree=90 * MIB,
    descriptors=20,
    wal=4 * MIB,
    database=10 * MIB,
)
_TASKS = 100_000


def run(change: Callable[[Sample], Sample] = lambda s: s) -> list[Sample]:
    return [change(replace(STEADY, done=done)) for done in range(500, _TASKS + 1, 500)]


def test_a_steady_run_is_flat() -> None:
    assert complaints(run(), long_lived=True) == []


def test_what_a_start_takes_is_not_growth() -> None:
    def warming(s: Sample) -> Sample:
        return replace(s, coordinator=s.coordinator - (10 * MIB if s.done < 0.2 * _TASKS else 0))

    assert complaints(run(warming), long_lived=True) == []


@pytest.mark.parametrize("what", ["producer", "coordinator", "tree", "wal", "database"])
def test_a_kibibyte_lost_in_each_task_is_noticed(what: str) -> None:
    def leak(s: Sample) -> Sample:
        return replace(s, **{what: getattr(s, what) + 1024 * s.done})

    assert len(complaints(run(leak), long_lived=True)) == 1


def test_a_descriptor_left_in_every_thousandth_task_is_noticed() -> None:
    def leak(s: Sample) -> Sample:
        return replace(s, descriptors=20 + s.done // 1000)

    assert len(complaints(run(leak), long_lived=True)) == 1


def test_a_task_that_leaks_in_its_child_is_noticed_though_the_child_is_replaced() -> None:
    def child(s: Sample) -> Sample:
        life, age = divmod(s.done, 5_000)
        return replace(s, children={100 + life: 30 * MIB + 1024 * age})

    assert len(complaints(run(child), long_lived=True)) == 1
    assert complaints(run(child), long_lived=False) == []
