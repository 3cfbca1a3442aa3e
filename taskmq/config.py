"""The settings, checked once at construction; nothing is clamped and no unknown name is ignored.

Names come from the seed (§8) where it names them. Durations are seconds, sizes bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from taskmq.errors import ConfigError, known_keywords, nearest
from taskmq.priority import Priority, declare_priority
from taskmq.retry import RetryPriority, check_retry_priority
from taskmq.states import AckMode

DAY = 86_400.0
MIB = 1024 * 1024
# Wins over `broker_url` of every App of a process; `taskmq -b URL` sets it for workers and their children.
BROKER_VARIABLE = "TASKMQ_BROKER_URL"
CONTENT_TYPES = ("json", "msgpack", "yaml", "pickle")
POOLS = ("prefork", "threads", "solo", "asyncio")
START_METHODS = ("fork", "spawn")


@known_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """One queue.

    `weight` shares a band between queues (P3), at least 1. `priority` is only the fallback for
    messages whose call and task name none; it never ranks queues. Raises `ConfigError`.
    """

    weight: int = 1
    priority: int | None = None

    def __post_init__(self) -> None:
        if (
            isinstance(self.weight, bool)
            or not isinstance(self.weight, int)
            or not 1 <= self.weight <= 1000
        ):
            raise ConfigError(f"QueueConfig.weight: an int from 1 to 1000, got {self.weight!r}")
        if self.priority is not None:
            declare_priority(self.priority, "QueueConfig.priority")


@known_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings of an app. Raises `ConfigError` naming the setting, the value and what is accepted."""

    # where messages and results live
    broker_url: str = "sqlite:///taskmq.db"
    result_url: str | None = None  # None: beside the messages, in the same transaction
    default_queue: str = "default"
    queues: Mapping[str, QueueConfig] = field(default_factory=dict)
    # priority (P1-P19)
    default_priority: int = Priority.NORMAL
    retry_priority: RetryPriority = "keep"  # P5
    poll_interval: float = 0.05  # P15
    concurrency: int | None = None  # None: the number of CPUs
    prefetch: int | None = None  # None: = concurrency (P16), or
    prefetch_multiplier: int | None = None  # that many times the slots a worker turns out to have
    yield_delay: float = 0.1  # P14, plus jitter
    yield_min_delta: int = 1  # P12
    max_yields: int = 100  # P14
    normal_reserved_slots: int = 0  # P17
    urgent_reserved_slots: int = 0
    urgent_threshold: int = Priority.HIGH
    aging_interval: float | None = None  # P4: seconds of waiting per level, None = off
    aging_cap: int = 9
    # delivery
    ack: AckMode = AckMode.ON_FINISH
    max_deliveries: int = 5
    lease: float = 30.0
    drain_timeout: float | None = 25.0  # None: wait for running tasks without a deadline
    watchdog: float = 60.0
    # workers
    pool: str = "prefork"
    start_method: str | None = None  # of prefork children; None: fork on Linux, spawn elsewhere
    remote_control: bool = True
    # tasks
    time_limit: float | None = None
    soft_time_limit: float | None = None
    max_tasks_per_child: int | None = None
    max_memory_per_child: int | None = None  # KiB, as Celery
    # bodies
    max_body: int = MIB
    serializer: str = "json"
    accept_content: tuple[str, ...] = ("json",)
    # how long things are kept
    result_expires: float | None = DAY  # None or 0: for ever
    dead_letter_expires: float | None = 30 * DAY
    revocation_expires: float = DAY
    ignore_result: bool = False
    # visibility
    events: bool = False
    depth_interval: float = 10.0
    starvation_after: float = 300.0

    def __post_init__(self) -> None:
        check = _Check(self)
        check.text("broker_url")
        check.text("default_queue")
        if self.result_url is not None:
            check.text("result_url")
        declare_priority(self.default_priority, "Config.default_priority")
        declare_priority(self.urgent_threshold, "Config.urgent_threshold")
        check_retry_priority(self.retry_priority, "Config.retry_priority")
        check.number("poll_interval", low=0.001, high=60)
        check.integer("concurrency", low=1, optional=True)
        check.integer("prefetch", low=1, optional=True)
        check.integer("prefetch_multiplier", low=1, optional=True)
        check.number("yield_delay", low=0)
        check.integer("yield_min_delta", low=1, high=18)
        check.integer("max_yields", low=1)
        check.integer("normal_reserved_slots", low=0)
        check.integer("urgent_reserved_slots", low=0)
        check.number("aging_interval", low=0.001, optional=True)
        check.integer("aging_cap", low=0, high=18)
        check.integer("max_deliveries", low=1)
        check.number("lease", low=0.1)
        for name in (
            "drain_timeout",
            "time_limit",
            "soft_time_limit",
            "result_expires",
            "dead_letter_expires",
        ):
            check.number(name, low=0, optional=True)
        for name in ("watchdog", "revocation_expires", "depth_interval", "starvation_after"):
            check.number(name, low=0)
        check.integer("max_tasks_per_child", low=1, optional=True)
        check.integer("max_memory_per_child", low=1024, optional=True)
        check.integer("max_body", low=1)
        for name in ("ignore_result", "events", "remote_control"):
            check.boolean(name)
        check.one_of("pool", POOLS)
        if self.start_method is not None:
            check.one_of("start_method", START_METHODS)
        check.one_of("serializer", CONTENT_TYPES)
        check.content_types()
        check.queues()
        check.slots()
        if not isinstance(self.ack, AckMode):
            try:
                object.__setattr__(self, "ack", AckMode(self.ack))
            except ValueError:
                modes = ", ".join(repr(m.value) for m in AckMode)
                raise ConfigError(f"Config.ack: one of {modes}, got {self.ack!r}") from None
        object.__setattr__(self, "queues", MappingProxyType(dict(self.queues)))

    def queue(self, name: str) -> QueueConfig:
        """The configuration of a queue; the defaults for a name that has none."""
        return self.queues.get(name) or _DEFAULT_QUEUE

    @property
    def slots(self) -> int:
        """`concurrency`, or the number of CPUs."""
        return self.concurrency or os.cpu_count() or 1

    def changed(self, **settings: Any) -> Config:
        """A copy with these settings; `ConfigError` for an unknown name."""
        unknown_settings(settings)
        return replace(self, **settings)


_DEFAULT_QUEUE = QueueConfig()
SETTING_NAMES: tuple[str, ...] = tuple(f.name for f in fields(Config))


def unknown_settings(settings: Mapping[str, Any]) -> None:
    """`ConfigError` naming the first setting that does not exist, and the likely one."""
    for name in settings:
        if name not in SETTING_NAMES:
            raise ConfigError(f"unknown setting {name!r}.{nearest(name, SETTING_NAMES)}")


class _Check:
    """The checks, apart from the settings, so that Config reads as a table."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def _fail(self, name: str, accepted: str) -> ConfigError:
        return ConfigError(f"Config.{name}: {accepted}, got {getattr(self._config, name)!r}")

    def text(self, name: str) -> None:
        value = getattr(self._config, name)
        if not isinstance(value, str) or not value:
            raise self._fail(name, "text that is not empty")

    def boolean(self, name: str) -> None:
        if not isinstance(getattr(self._config, name), bool):
            raise self._fail(name, "True or False")

    def integer(
        self, name: str, *, low: int, high: int | None = None, optional: bool = False
    ) -> None:
        value = getattr(self._config, name)
        if optional and value is None:
            return
        ok = isinstance(value, int) and not isinstance(value, bool) and value >= low
        if not ok or (high is not None and value > high):
            bounds = f"an int from {low}" + (f" to {high}" if high is not None else "")
            raise self._fail(name, bounds + (" or None" if optional else ""))

    def number(
        self, name: str, *, low: float, high: float | None = None, optional: bool = False
    ) -> None:
        value = getattr(self._config, name)
        if optional and value is None:
            return
        ok = (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and low <= value <= sys.float_info.max
        )
        if not ok or (high is not None and value > high):
            bounds = f"a number from {low:g}" + (f" to {high:g}" if high is not None else "")
            raise self._fail(name, bounds + (" or None" if optional else ""))

    def one_of(self, name: str, accepted: tuple[str, ...]) -> None:
        value = getattr(self._config, name)
        if value not in accepted:
            likely = nearest(str(value), accepted)
            raise ConfigError(
                f"Config.{name}: one of {', '.join(accepted)}, got {value!r}.{likely}"
            )

    def content_types(self) -> None:
        accepted = self._config.accept_content
        if isinstance(accepted, str) or not all(isinstance(a, str) for a in accepted):
            raise self._fail("accept_content", "a list of content types")
        for name in accepted:
            if name not in CONTENT_TYPES:
                raise ConfigError(
                    f"Config.accept_content: some of {', '.join(CONTENT_TYPES)}, got {name!r}."
                    f"{nearest(name, CONTENT_TYPES)}"
                )
        object.__setattr__(self._config, "accept_content", tuple(accepted))
        written = self._config.serializer
        if written != "json" and written not in accepted:
            raise ConfigError(
                f"Config.serializer: {written!r} is not in accept_content ({', '.join(accepted)}), so "
                "workers would refuse what it writes"
            )

    def queues(self) -> None:
        queues = self._config.queues
        if not isinstance(queues, Mapping):
            raise self._fail("queues", "a mapping of queue name to QueueConfig")
        for name, queue in queues.items():
            if not isinstance(name, str) or not name:
                raise ConfigError(
                    f"Config.queues: queue names are text that is not empty, got {name!r}"
                )
            if not isinstance(queue, QueueConfig):
                raise ConfigError(f"Config.queues[{name!r}]: a QueueConfig, got {queue!r}")

    def slots(self) -> None:
        # Checked against concurrency only where both are written down: a default follows the machine.
        config = self._config
        if config.concurrency is None:
            return
        for name in ("normal_reserved_slots", "urgent_reserved_slots"):
            value = getattr(config, name)
            if value >= config.concurrency and value:
                raise ConfigError(
                    f"Config.{name}: less than concurrency ({config.concurrency}), got {value!r}; "
                    "it would leave no slot for the other messages"
                )
