"""The two clocks, and the one that tests move."""

from __future__ import annotations

import time

import pytest

from taskmq.clock import Clock, FakeClock, SystemClock


def test_system_clock_tells_the_machines_time() -> None:
    clock: Clock = SystemClock()

    before = (time.time(), time.monotonic())
    seen = (clock.now(), clock.monotonic())
    after = (time.time(), time.monotonic())

    assert before[0] <= seen[0] <= after[0]
    assert before[1] <= seen[1] <= after[1]


def test_fake_clock_stands_still_until_told() -> None:
    clock: Clock = FakeClock(1000.0)

    assert clock.now() == clock.now() == 1000.0
    assert clock.monotonic() == clock.monotonic()


def test_advance_moves_both_clocks() -> None:
    clock = FakeClock(1000.0)
    mono = clock.monotonic()

    clock.advance(5)
    clock.advance(0)

    assert (clock.now(), clock.monotonic()) == (1005.0, mono + 5)


def test_step_is_a_jump_of_the_wall_clock_alone() -> None:
    clock = FakeClock(1000.0)
    mono = clock.monotonic()

    clock.step(-3600)

    assert (clock.now(), clock.monotonic()) == (-2600.0, mono)


def test_time_does_not_advance_backwards() -> None:
    with pytest.raises(ValueError, match=r"use step\(\) for a clock jump, got -1"):
        FakeClock().advance(-1)
