"""When a failed run is tried again, how long after, and at which priority (P5)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.errors import ConfigError
from taskmq.retry import RetryPolicy, check_retry_priority, retry_priority

QUICK = settings(max_examples=100, deadline=None)


@given(
    delay=st.floats(0, 1000),
    factor=st.floats(1, 1e6),
    max_delay=st.floats(0, 1e6),
    jitter=st.floats(0, 0.5),
    retries=st.integers(0, 100_000),
    seed=st.integers(),
)
@QUICK
def test_wait_stays_around_the_written_delay(
    delay: float, factor: float, max_delay: float, jitter: float, retries: int, seed: int
) -> None:
    policy = RetryPolicy(delay=delay, factor=factor, max_delay=max_delay, jitter=jitter)

    wait = policy.wait(retries, Random(seed))

    written = min(max_delay, delay) if retries == 0 else max_delay
    assert wait <= max_delay * (1 + jitter) * (1 + 1e-9)
    if retries == 0:
        assert written * (1 - jitter) * (1 - 1e-9) <= wait


def test_backoff_grows_by_the_factor_up_to_the_maximum() -> None:
    policy = RetryPolicy(delay=1, factor=3, max_delay=20, jitter=0)

    assert [policy.wait(n, Random(0)) for n in range(5)] == [1, 3, 9, 20, 20]


def test_without_backoff_every_wait_is_the_delay() -> None:
    policy = RetryPolicy(delay=5, backoff=False, max_delay=1, jitter=0)

    assert [policy.wait(n, Random(0)) for n in (0, 1, 50)] == [5, 5, 5]


def test_wait_of_an_endlessly_retried_task_does_not_overflow() -> None:
    assert RetryPolicy(max_retries=None, jitter=0).wait(10**6, Random(0)) == 600
    assert RetryPolicy(delay=0, factor=1e9, jitter=0).wait(10**6, Random(0)) == 0


def test_jitter_spreads_in_both_directions_and_comes_from_the_given_random() -> None:
    policy = RetryPolicy(delay=10, jitter=0.2)

    waits = [policy.wait(0, Random(seed)) for seed in range(50)]

    assert min(waits) < 9
    assert max(waits) > 11
    assert all(8 <= wait <= 12 for wait in waits)
    assert waits == [policy.wait(0, Random(seed)) for seed in range(50)]


def test_full_jitter_spreads_from_zero() -> None:
    policy = RetryPolicy(delay=10, full_jitter=True)

    waits = [policy.wait(0, Random(seed)) for seed in range(50)]

    assert min(waits) < 2
    assert all(0 <= wait <= 10 for wait in waits)


@pytest.mark.parametrize(
    ("limit", "retries", "over"),
    [(0, 0, True), (3, 2, False), (3, 3, True), (3, 4, True), (None, 10**6, False)],
)
def test_policy_is_exhausted_after_its_retries(limit: int | None, retries: int, over: bool) -> None:
    assert RetryPolicy(max_retries=limit).exhausted(retries) is over


def test_policy_wants_only_the_named_exceptions_and_giving_up_wins() -> None:
    policy = RetryPolicy(on=(OSError,), give_up_on=(FileNotFoundError,))

    assert policy.wants(ConnectionError())
    assert not policy.wants(FileNotFoundError())
    assert not policy.wants(ValueError())
    assert not RetryPolicy().wants(ValueError())


@pytest.mark.parametrize("on", [ValueError, (ValueError,), [ValueError], {ValueError}])
def test_one_class_or_any_collection_of_them_is_taken(on: Any) -> None:
    policy = RetryPolicy(on=on, give_up_on=on)

    assert policy.on == policy.give_up_on == (ValueError,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_retries", -1),
        ("max_retries", True),
        ("max_retries", 1.5),
        ("max_retries", "3"),
        ("delay", -1),
        ("delay", "1"),
        ("delay", True),
        ("delay", float("nan")),
        ("delay", float("inf")),
        ("max_delay", -0.1),
        ("max_delay", None),
        ("max_delay", float("inf")),
        ("factor", 0.9),
        ("factor", "2"),
        ("factor", float("inf")),
        ("jitter", 0.6),
        ("jitter", -0.1),
        ("jitter", True),
        ("backoff", 2),
        ("full_jitter", None),
        ("on", (ValueError, "x")),
        ("on", 5),
        ("give_up_on", (ValueError(),)),
        ("give_up_on", (int,)),
    ],
)
def test_wrong_value_is_a_config_error_that_names_it(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"^RetryPolicy\.{name}: ") as caught:
        RetryPolicy(**{name: value})

    offender = value[-1] if isinstance(value, tuple) else value
    assert repr(offender) in str(caught.value)


@pytest.mark.parametrize("priority", range(-9, 10))
def test_retry_keeps_the_priority_or_goes_one_level_down_and_not_below_the_lowest(
    priority: int,
) -> None:
    assert retry_priority(priority, "keep") == priority
    assert retry_priority(priority, "lower") == max(-9, priority - 1)


def test_retry_priority_has_two_values() -> None:
    assert check_retry_priority("lower", "here") == "lower"
    with pytest.raises(
        ConfigError, match=r"^here: retry_priority is 'keep' or 'lower', got 'raise'"
    ):
        check_retry_priority("raise", "here")
