"""The options of a `sqlite://` URL."""

from __future__ import annotations

import pytest

from taskmq.errors import ConfigError
from taskmq.transports.sqlite.options import SQLiteOptions


def test_nothing_said_means_the_safe_defaults() -> None:
    assert SQLiteOptions.parse({}) == SQLiteOptions(
        durability="normal", mode=0o600, network_fs=False, busy_timeout=10.0
    )


def test_every_option_is_taken() -> None:
    text = {"durability": "full", "mode": "0660", "network_fs": "allow", "busy_timeout": "2.5"}

    assert SQLiteOptions.parse(text) == SQLiteOptions(
        durability="full", mode=0o660, network_fs=True, busy_timeout=2.5
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mode", "rw"),
        ("mode", "0666"),  # others never get at messages
        ("mode", "0060"),
        ("mode", "0400"),
        ("busy_timeout", "-1"),
        ("busy_timeout", "nan"),
        ("busy_timeout", "soon"),
        ("network_fs", "yes"),
        ("durability", "FULL"),
        ("timeout", "10"),
    ],
)
def test_a_value_that_is_not_accepted_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        SQLiteOptions.parse({name: value})

    assert name in str(refused.value)
