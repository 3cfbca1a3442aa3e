"""How soon a waiter answers the next commit."""

from __future__ import annotations

import time

import pytest

from taskmq.transports.sqlite.pace import Pace


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in a list so that a test can move it."""
    at = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: at[0])
    return at


def test_the_first_looks_in_vain_are_free(now: list[float]) -> None:
    mine = Pace(free=2, longest=0.005)
    mine.woken()
    mine.woken()
    assert mine.rest() == 0.0
    mine.woken()
    assert mine.rest() == pytest.approx(0.0005)


def test_a_pause_grows_to_its_longest(now: list[float]) -> None:
    mine = Pace(free=0, longest=0.005)
    rests = []
    for _ in range(50):
        mine.woken()
        rests.append(round(mine.rest(), 6))
    assert rests[:5] == [0.0005, 0.001, 0.002, 0.004, 0.005]
    assert set(rests[5:]) == {0.005}


def test_a_pause_passes(now: list[float]) -> None:
    mine = Pace(free=0, longest=0.005)
    mine.woken()
    now[0] += 0.0004
    assert mine.rest() == pytest.approx(0.0001)
    now[0] += 1.0
    assert mine.rest() == 0.0


def test_finding_something_ends_the_pause_and_forgets_what_was_in_vain(now: list[float]) -> None:
    mine = Pace(free=1, longest=0.005)
    for _ in range(5):
        mine.woken()
    mine.found()
    assert mine.rest() == 0.0
    mine.woken()
    assert mine.rest() == 0.0
