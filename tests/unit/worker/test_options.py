"""Worker options are checked where they are written, and resolved over the settings."""

from __future__ import annotations

import math
from typing import Any

import pytest

from taskmq.config import Config, QueueConfig
from taskmq.errors import ConfigError
from taskmq.worker.options import WorkerOptions
from taskmq.worker.rules import resolve


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"pool": "thread"}, "threads"),
        ({"pool": "eventlet"}, "pool"),
        ({"queues": "email"}, "queues"),
        ({"queues": ["email", ""]}, "queues"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"concurrency": 2.0}, "concurrency"),
        ({"prefetch": -1}, "prefetch"),
        ({"max_tasks_per_child": 0}, "max_tasks_per_child"),
        ({"max_memory_per_child": 5}, "max_memory_per_child"),
        ({"time_limit": 0}, "time_limit"),
        ({"time_limit": math.inf}, "time_limit"),
        ({"soft_time_limit": "3"}, "soft_time_limit"),
        ({"drain_timeout": -1}, "drain_timeout"),
        ({"drain_timeout": math.nan}, "drain_timeout"),
        ({"start_method": "forkserver"}, "start_method"),
        ({"pool": "solo", "concurrency": 2}, "concurrency"),
        ({"pool": "prefork", "start_method": "spawn"}, "app_spec"),
    ],
)
def test_a_wrong_option_is_named_with_its_value(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        WorkerOptions(**options)


def test_a_misspelt_pool_gets_the_likely_one() -> None:
    with pytest.raises(ConfigError, match=r"got 'preforks'.*Did you mean 'prefork'"):
        WorkerOptions(pool="preforks")


def test_unset_options_come_from_the_settings() -> None:
    config = Config(
        concurrency=3, drain_timeout=7, time_limit=9, queues={"a": QueueConfig(weight=4)}
    )
    rules = resolve(config, WorkerOptions(), "w")
    assert (rules.slots, rules.prefetch, rules.drain_timeout, rules.time_limit) == (3, 3, 7, 9)
    assert [(q.name, q.weight) for q in rules.queues] == [("a", 4), ("default", 1)]


def test_options_win_over_the_settings() -> None:
    config = Config(concurrency=3, drain_timeout=7, time_limit=9)
    options = WorkerOptions(
        queues=("b", "a", "b"), concurrency=2, prefetch=5, drain_timeout=0, time_limit=1
    )
    rules = resolve(config, options, "w")
    assert (rules.slots, rules.prefetch, rules.drain_timeout, rules.time_limit) == (2, 5, 0, 1)
    assert [q.name for q in rules.queues] == ["b", "a"]


def test_pool_and_start_method_come_from_the_settings_where_the_options_name_none() -> None:
    config = Config(pool="solo", start_method="spawn", concurrency=8)

    unset = WorkerOptions().over(config)
    given = WorkerOptions(pool="threads", start_method="fork").over(config)

    assert (unset.pool, unset.start_method) == ("solo", "spawn")
    assert (given.pool, given.start_method) == ("threads", "fork")
    assert resolve(config, WorkerOptions(), "w").slots == 1
    assert resolve(config, WorkerOptions(pool="threads"), "w").slots == 8


def test_spawned_children_of_the_settings_need_the_app_too() -> None:
    with pytest.raises(ConfigError, match="app_spec"):
        WorkerOptions().over(Config(start_method="spawn"))


def test_an_endless_drain_is_said_with_infinity() -> None:
    assert resolve(Config(), WorkerOptions(drain_timeout=math.inf), "w").drain_timeout is None


def test_solo_has_one_slot_whatever_the_settings_say() -> None:
    assert resolve(Config(concurrency=8), WorkerOptions(pool="solo"), "w").slots == 1


def test_reserved_slots_that_leave_none_are_refused_with_the_worker_s_own_concurrency() -> None:
    config = Config(normal_reserved_slots=2)
    with pytest.raises(ConfigError, match=r"normal_reserved_slots: less than .* \(2\)"):
        resolve(config, WorkerOptions(concurrency=2), "w")
