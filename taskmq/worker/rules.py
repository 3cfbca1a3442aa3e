"""What governs one worker: its options over the app's `Config`, resolved and checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskmq.config import Config
from taskmq.errors import ConfigError
from taskmq.policy.aging import Aging
from taskmq.policy.bands import OPEN, Budget
from taskmq.stores import DISABLED
from taskmq.transports.base import QueueShare
from taskmq.worker.options import WorkerOptions

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Times in seconds. `drain_timeout` None waits for running tasks without a deadline."""

    name: str
    queues: tuple[QueueShare, ...]
    slots: int
    prefetch: int
    poll_interval: float
    lease: float
    drain_timeout: float | None
    watchdog: float
    yield_delay: float
    yield_min_delta: int
    normal_reserved_slots: int
    urgent_reserved_slots: int
    urgent_threshold: int
    aging: Aging | None
    time_limit: float | None
    soft_time_limit: float | None
    result_expires: float | None
    keep_results: bool
    events: bool
    depth_interval: float
    starvation_after: float

    @property
    def bounded(self) -> bool:
        """Whether slots are reserved for a class of messages (P17)."""
        return bool(self.normal_reserved_slots or self.urgent_reserved_slots)

    def budget(self, running: Iterable[int]) -> Budget:
        """What is left of the slots while messages of these priorities run."""
        if not self.bounded:
            return OPEN
        return Budget.of(
            slots=self.slots,
            normal_reserved=self.normal_reserved_slots,
            urgent_reserved=self.urgent_reserved_slots,
            threshold=self.urgent_threshold,
            running=running,
        )


def resolve(config: Config, options: WorkerOptions, name: str) -> Rules:
    """The rules of a worker of this name; `ConfigError` when options and settings do not fit."""
    pool = options.pool or config.pool
    slots = 1 if pool == "solo" else options.concurrency or config.slots
    for setting in ("normal_reserved_slots", "urgent_reserved_slots"):
        value = getattr(config, setting)
        if value and value >= slots:
            raise ConfigError(
                f"Config.{setting}: less than the worker's concurrency ({slots}), got {value!r}; it would "
                "leave no slot for the other messages"
            )
    names = options.queues or (*config.queues, config.default_queue)
    drain = config.drain_timeout if options.drain_timeout is None else options.drain_timeout
    aging = None
    if config.aging_interval is not None:
        aging = Aging(config.aging_interval, config.aging_cap)
    return Rules(
        name=name,
        queues=tuple(QueueShare(q, config.queue(q).weight) for q in dict.fromkeys(names)),
        slots=slots,
        prefetch=options.prefetch or config.prefetch or slots * (config.prefetch_multiplier or 1),
        poll_interval=config.poll_interval,
        lease=config.lease,
        drain_timeout=None if drain is None or math.isinf(drain) else drain,
        watchdog=config.watchdog,
        yield_delay=config.yield_delay,
        yield_min_delta=config.yield_min_delta,
        normal_reserved_slots=config.normal_reserved_slots,
        urgent_reserved_slots=config.urgent_reserved_slots,
        urgent_threshold=config.urgent_threshold,
        aging=aging,
        time_limit=options.time_limit or config.time_limit,
        soft_time_limit=options.soft_time_limit or config.soft_time_limit,
        result_expires=config.result_expires,
        keep_results=config.result_url != DISABLED,
        events=config.events if options.events is None else options.events,
        depth_interval=config.depth_interval,
        starvation_after=config.starvation_after,
    )
