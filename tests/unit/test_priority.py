"""One range, one direction, no clamp (P1, P11), and who decides (seed §3.4)."""

from __future__ import annotations

import enum
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.errors import ConfigError, PriorityError
from taskmq.priority import (
    MAX_PRIORITY,
    MIN_PRIORITY,
    Priority,
    check_priority,
    declare_priority,
    resolve_priority,
)


class Level(enum.IntEnum):
    URGENT = 7


class Odd(int):
    pass


@pytest.mark.parametrize("value", range(-9, 10))
def test_every_level_is_taken_as_it_is(value: int) -> None:
    assert check_priority(value, "here") == declare_priority(value, "here") == value


@pytest.mark.parametrize(("value", "plain"), [(Level.URGENT, 7), (Odd(-3), -3)])
def test_int_subclass_is_kept_as_a_plain_int(value: int, plain: int) -> None:
    for check in (check_priority, declare_priority):
        kept = check(value, "here")
        assert kept == plain
        assert type(kept) is int


@pytest.mark.parametrize("value", [10, -10, 255, 2**70, Odd(10)])
def test_value_out_of_range_is_refused_and_not_clamped(value: int) -> None:
    with pytest.raises(PriorityError) as caught:
        check_priority(value, "submit(priority)")

    text = str(caught.value)
    assert text.startswith(f"submit(priority): priority {int(value)} is out of range")
    assert "-9..9" in text
    assert "larger = more urgent" in text


@pytest.mark.parametrize(
    "value", [True, False, 1.0, 0.5, "5", b"5", None, [1], Decimal(1), Fraction(1), float("nan")]
)
def test_anything_but_an_int_is_refused(value: Any) -> None:
    with pytest.raises(PriorityError) as caught:
        check_priority(value, "submit(priority)")

    text = str(caught.value)
    assert f"got {value!r} of type {type(value).__name__}" in text
    assert "an int from -9 to 9" in text


@pytest.mark.parametrize("value", [10, True, "5"])
def test_declaration_raises_a_config_error(value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        declare_priority(value, "QueueConfig.priority")

    assert type(caught.value) is ConfigError
    assert str(caught.value).startswith("QueueConfig.priority: ")


def test_error_at_a_call_is_both_a_config_and_a_value_error() -> None:
    assert issubclass(PriorityError, ConfigError)
    assert issubclass(PriorityError, ValueError)


def test_constants_are_plain_ints_in_ascending_urgency() -> None:
    levels = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL]

    assert levels == [-5, 0, 5, 9]
    assert {type(level) for level in levels} == {int}
    assert (MIN_PRIORITY, MAX_PRIORITY) == (-9, 9)


_level = st.none() | st.integers(-9, 9)


@given(_level, _level, _level, _level, st.integers(-9, 9))
@settings(max_examples=100, deadline=None)
def test_first_level_that_is_set_decides(
    submitted: int | None, parent: int | None, task: int | None, queue: int | None, default: int
) -> None:
    resolved = resolve_priority(
        submitted=submitted, parent=parent, task=task, queue=queue, default=default
    )

    given_ = [level for level in (submitted, parent, task, queue, default) if level is not None]
    assert resolved == given_[0]


@pytest.mark.parametrize(
    ("levels", "resolved"),
    [
        ({}, 0),
        ({"default": -1}, -1),
        ({"queue": 1, "default": -1}, 1),
        ({"task": 2, "queue": 1}, 2),
        ({"parent": 3, "task": 2}, 3),
        ({"submitted": 0, "parent": 3, "task": 2, "queue": 1, "default": -1}, 0),
    ],
)
def test_zero_counts_as_set(levels: dict[str, int], resolved: int) -> None:
    assert resolve_priority(**levels) == resolved
