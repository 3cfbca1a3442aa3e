"""Settings are checked once, at construction; nothing is clamped, nothing unknown is ignored."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from taskmq import AckMode, App, Config, QueueConfig, RetryPolicy
from taskmq.config import SETTING_NAMES
from taskmq.errors import ConfigError


def config(**settings: Any) -> Config:
    """A Config of settings whose types are the test's business."""
    return Config(**settings)


NUMBERS = {
    "poll_interval": (0.001, 60),
    "yield_delay": (0, None),
    "aging_interval": (0.001, None),
    "lease": (0.1, None),
    "drain_timeout": (0, None),
    "watchdog": (0, None),
    "time_limit": (0, None),
    "soft_time_limit": (0, None),
    "result_expires": (0, None),
    "dead_letter_expires": (0, None),
    "revocation_expires": (0, None),
    "depth_interval": (0, None),
    "starvation_after": (0, None),
}
INTEGERS = {
    "default_priority": (-9, 9),
    "urgent_threshold": (-9, 9),
    "concurrency": (1, None),
    "prefetch": (1, None),
    "prefetch_multiplier": (1, None),
    "yield_min_delta": (1, 18),
    "max_yields": (1, None),
    "normal_reserved_slots": (0, None),
    "urgent_reserved_slots": (0, None),
    "aging_cap": (0, 18),
    "max_deliveries": (1, None),
    "max_tasks_per_child": (1, None),
    "max_memory_per_child": (1024, None),
    "max_body": (1, None),
}
OPTIONAL = {
    "concurrency",
    "prefetch",
    "prefetch_multiplier",
    "aging_interval",
    "drain_timeout",
    "time_limit",
    "soft_time_limit",
    "result_expires",
    "dead_letter_expires",
    "max_tasks_per_child",
    "max_memory_per_child",
    "result_url",
}


def test_every_setting_is_checked_here() -> None:
    others = {
        "broker_url",
        "result_url",
        "default_queue",
        "queues",
        "retry_priority",
        "ack",
        "serializer",
        "accept_content",
        "ignore_result",
        "events",
        "pool",
        "start_method",
        "remote_control",
    }

    assert set(NUMBERS) | set(INTEGERS) | others == set(SETTING_NAMES)


@pytest.mark.parametrize("name", [*NUMBERS, *INTEGERS])
def test_both_ends_of_a_range_are_accepted(name: str) -> None:
    low, high = {**NUMBERS, **INTEGERS}[name]
    # Above every default that is compared with it.
    more = {"concurrency": 4} if name.endswith("reserved_slots") else {}
    for value in (low, high):
        if value is not None:
            assert getattr(config(**{name: value, **more}), name) == value


@pytest.mark.parametrize("name", [*NUMBERS, *INTEGERS])
def test_past_either_end_is_refused_naming_setting_and_value(name: str) -> None:
    low, high = {**NUMBERS, **INTEGERS}[name]
    step = 1 if name in INTEGERS else 0.0001
    for value in (low - step, *([high + 1] if high is not None else [])):
        with pytest.raises(ConfigError, match=name) as refused:
            config(**{name: value})
        assert str(value) in str(refused.value)


@pytest.mark.parametrize("name", [*NUMBERS, *INTEGERS])
@pytest.mark.parametrize("value", [True, "1", math.nan, math.inf, -math.inf, [1], b"1"])
def test_a_value_of_another_kind_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        config(**{name: value})


@pytest.mark.parametrize("name", [*NUMBERS, *INTEGERS])
def test_none_is_accepted_only_where_it_means_something(name: str) -> None:
    if name in OPTIONAL:
        assert getattr(config(**{name: None}), name) is None
    else:
        with pytest.raises(ConfigError, match=name):
            config(**{name: None})


@pytest.mark.parametrize("name", INTEGERS)
def test_a_fraction_is_no_int(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        config(**{name: 5.5})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("broker_url", ""),
        ("broker_url", None),
        ("broker_url", 5),
        ("result_url", ""),
        ("result_url", 5),
        ("default_queue", ""),
        ("default_queue", None),
        ("retry_priority", "raise"),
        ("ack", "never"),
        ("ack", None),
        ("serializer", "jsn"),
        ("accept_content", "json"),
        ("accept_content", ["xml"]),
        ("accept_content", [5]),
        ("ignore_result", 1),
        ("events", "yes"),
        ("remote_control", None),
        ("pool", "gevent"),
        ("pool", None),
        ("start_method", "forkserver"),
        ("queues", ["a"]),
        ("queues", {"a": 1}),
        ("queues", {"": QueueConfig()}),
        ("queues", {5: QueueConfig()}),
    ],
)
def test_other_settings_refuse_what_they_cannot_be(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        config(**{name: value})


def test_a_near_name_is_suggested_for_values_too() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'msgpack'"):
        Config(serializer="msgpak")


def test_what_is_written_must_be_accepted() -> None:
    assert Config(serializer="pickle", accept_content=("json", "pickle")).serializer == "pickle"
    assert Config(accept_content=("msgpack",)).serializer == "json"
    with pytest.raises(
        ConfigError, match=r"serializer.*'pickle' is not in accept_content \(json\)"
    ):
        Config(serializer="pickle")


@pytest.mark.parametrize("weight", [0, -1, 1001, True, 1.5, "3", None])
def test_a_weight_is_an_int_from_one(weight: Any) -> None:
    with pytest.raises(ConfigError, match=r"QueueConfig\.weight"):
        QueueConfig(weight=weight)


def test_a_queue_without_configuration_has_the_defaults() -> None:
    settings = Config(queues={"email": QueueConfig(weight=3, priority=2)})

    assert settings.queue("email") == QueueConfig(weight=3, priority=2)
    assert settings.queue("other") == QueueConfig(weight=1, priority=None)


@pytest.mark.parametrize("name", ["normal_reserved_slots", "urgent_reserved_slots"])
def test_reserved_slots_leave_one_for_the_others(name: str) -> None:
    config(**{name: 3}, concurrency=4)
    with pytest.raises(ConfigError, match=f"{name}.*less than concurrency"):
        config(**{name: 4}, concurrency=4)


def test_an_ack_mode_can_be_named() -> None:
    assert Config(ack="late").ack is AckMode.LATE  # type: ignore[arg-type]


def test_an_int_enum_becomes_a_plain_int_nowhere_else_than_its_value() -> None:
    assert Config(default_priority=True + 1).default_priority == 2


def test_settings_cannot_be_changed_afterwards() -> None:
    queues = {"a": QueueConfig()}
    settings = Config(queues=queues)
    queues["b"] = QueueConfig()

    assert list(settings.queues) == ["a"]
    with pytest.raises(FrozenInstanceError):
        settings.lease = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        settings.queues["c"] = QueueConfig()  # type: ignore[index]


def test_changed_gives_a_checked_copy() -> None:
    settings = Config(lease=10)

    assert (settings.changed(lease=20).lease, settings.lease) == (20, 10)
    with pytest.raises(ConfigError, match="lease"):
        settings.changed(lease=0)
    with pytest.raises(ConfigError, match="Did you mean 'lease'"):
        settings.changed(leese=1)


def test_the_number_of_slots_follows_the_machine_unless_it_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    assert (Config().slots, Config(concurrency=2).slots) == (6, 2)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert Config().slots == 1


def test_an_app_refuses_what_its_config_refuses() -> None:
    with pytest.raises(ConfigError, match="poll_interval"):
        App(poll_interval=0)


def test_the_defaults_of_the_design() -> None:
    settings = Config()

    assert settings.default_priority == 0
    assert settings.poll_interval == 0.05
    assert (settings.yield_delay, settings.yield_min_delta, settings.max_yields) == (0.1, 1, 100)
    assert (settings.normal_reserved_slots, settings.urgent_reserved_slots) == (0, 0)
    assert settings.urgent_threshold == 5
    assert settings.aging_interval is None
    assert settings.retry_priority == "keep"
    assert settings.prefetch is None
    assert (settings.lease, settings.max_deliveries, settings.drain_timeout) == (30, 5, 25)
    assert settings.accept_content == ("json",)
    assert len(fields(Config)) == len(SETTING_NAMES)


@pytest.mark.parametrize(
    ("build", "wrong", "likely"),
    [
        (lambda: Config(concurency=3), "concurency", "concurrency"),  # type: ignore[call-arg]
        (lambda: QueueConfig(weigth=3), "weigth", "weight"),  # type: ignore[call-arg]
        (lambda: RetryPolicy(max_retry=3), "max_retry", "max_retries"),  # type: ignore[call-arg]
    ],
)
def test_an_unknown_keyword_names_the_likely_one(
    build: Callable[[], object], wrong: str, likely: str
) -> None:
    with pytest.raises(ConfigError, match=f"unknown setting '{wrong}'. Did you mean '{likely}'"):
        build()


def test_an_address_nobody_can_open_is_refused_when_the_app_is_built() -> None:
    with pytest.raises(ConfigError, match="arrives with the kombu adapter"):
        App(Config(broker_url="redis://x"))


def test_a_result_address_nobody_can_open_is_refused_when_the_app_is_built() -> None:
    with pytest.raises(ConfigError, match="accepted are"):
        App(result_url="ftp://x")
