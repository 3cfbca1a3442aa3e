"""Smooth weighted round robin inside one band, against a model written out by hand (P3, P10)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.policy.rotation import Share, rotate

QUICK = settings(max_examples=100, deadline=None)

weights = st.lists(st.integers(1, 7), min_size=2, max_size=5)


def shares(of: list[int], counters: dict[str, int] | None = None) -> list[Share]:
    return [Share(f"q{i}", weight, (counters or {}).get(f"q{i}", 0)) for i, weight in enumerate(of)]


def one_by_one(of: list[int], picks: int) -> list[str]:
    """The rule by hand: raise everybody by its weight, serve the highest, take the sum from it."""
    counters = [0] * len(of)
    out = []
    for _ in range(picks):
        counters = [c + w for c, w in zip(counters, of, strict=True)]
        best = counters.index(max(counters))
        counters[best] -= sum(of)
        out.append(f"q{best}")
    return out


@given(weights, st.integers(1, 60))
@QUICK
def test_single_picks_follow_the_rule(of: list[int], picks: int) -> None:
    counters: dict[str, int] = {}
    served = []
    for _ in range(picks):
        picked, counters = rotate(shares(of, counters), 1)
        served += picked

    assert served == one_by_one(of, picks)


@given(weights)
@QUICK
def test_every_full_round_serves_in_exact_proportion(of: list[int]) -> None:
    counters: dict[str, int] = {}
    served: Counter[str] = Counter()
    for _ in range(3 * sum(of)):
        picked, counters = rotate(shares(of, counters), 1)
        served.update(picked)

    assert served == {f"q{i}": 3 * weight for i, weight in enumerate(of)}
    assert set(counters.values()) == {0}


@given(weights, st.lists(st.integers(0, 20), min_size=1, max_size=10))
@QUICK
def test_each_queue_gets_one_when_there_are_enough(of: list[int], counts: list[int]) -> None:
    counters: dict[str, int] = {}
    for count in counts:
        picked, counters = rotate(shares(of, counters), count)

        assert len(picked) == count
        if count >= len(of):
            assert set(picked) == {f"q{i}" for i in range(len(of))}


@given(weights, st.integers(1, 6))
@QUICK
def test_whole_rounds_keep_the_proportion_and_the_minimum(of: list[int], rounds: int) -> None:
    picked, counters = rotate(shares(of), rounds * sum(of))

    assert Counter(picked) == {f"q{i}": rounds * weight for i, weight in enumerate(of)}
    assert set(counters.values()) == {0}


@given(weights, st.integers(1, 80))
@QUICK
def test_share_is_off_by_less_than_one_round(of: list[int], count: int) -> None:
    picked, _ = rotate(shares(of), count)

    served = Counter(picked)
    for i, weight in enumerate(of):
        exact = count * weight / sum(of)
        assert abs(served[f"q{i}"] - exact) < len(of)


@given(weights, st.lists(st.integers(-(10**6), 10**6), min_size=5, max_size=5), st.integers(1, 30))
@QUICK
def test_counters_stay_within_one_round_whatever_was_stored(
    of: list[int], stored: list[int], count: int
) -> None:
    _, counters = rotate(shares(of, {f"q{i}": c for i, c in enumerate(stored)}), count)

    assert set(counters) == {f"q{i}" for i in range(len(of))}
    assert all(-sum(of) <= counter <= sum(of) for counter in counters.values())


def test_debt_of_another_time_does_not_shut_a_queue_out() -> None:
    """Weights were lowered, or a heavy queue left the band: what is stored belongs to another scale."""
    picked, _ = rotate([Share("a", 1, -1000), Share("b", 1, 1000)], 10)

    assert Counter(picked)["a"] >= 3


@given(st.integers(0, 20), st.integers(-100, 100))
@QUICK
def test_queue_alone_in_its_band_moves_no_counter(count: int, counter: int) -> None:
    assert rotate([Share("a", 3, counter)], count) == (["a"] * count, {"a": counter})


def test_equal_queues_take_turns() -> None:
    picked, _ = rotate(shares([1, 1, 1]), 7)

    assert picked == ["q0", "q1", "q2", "q0", "q1", "q2", "q0"]


def test_heavy_queue_is_spread_and_not_bunched() -> None:
    picked, _ = rotate(shares([5, 1, 1]), 7)

    assert picked == ["q0", "q0", "q1", "q0", "q2", "q0", "q0"]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_what_a_queue_got_out_of_turn_is_made_up_for(count: int) -> None:
    """Every reserve gives the light queue one; between them, single picks are the heavy one's."""
    _, counters = rotate(shares([9, 1]), count)

    picked, _ = rotate(shares([9, 1], counters), 1)

    assert picked == ["q0"]
