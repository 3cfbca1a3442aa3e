"""When a failed run is tried again, how long after, and at which priority (P5). Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from taskmq.errors import ConfigError, known_keywords
from taskmq.priority import MIN_PRIORITY

RetryPriority = Literal["keep", "lower"]
RETRY_PRIORITIES = ("keep", "lower")


@known_keywords
@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How a task retries.

    `max_retries` None means without end. `delay` seconds before the first retry; with `backoff` each
    further one waits `factor` times longer, at most `max_delay`. `jitter` spreads a delay by that share
    of itself in both directions, so 0.2 means ±20 %: it never shrinks below half of what is written.
    `on` names the exceptions that retry by themselves; `give_up_on` wins over it.
    Raises `ConfigError` at construction.
    """

    max_retries: int | None = 3
    delay: float = 1.0
    backoff: bool = True
    factor: float = 2.0
    max_delay: float = 600.0
    jitter: float = 0.2
    full_jitter: bool = False
    on: tuple[type[BaseException], ...] = ()
    give_up_on: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        limit = self.max_retries
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int) or limit < 0
        ):
            raise ConfigError(f"RetryPolicy.max_retries: None or an int from 0, got {limit!r}")
        for name in ("delay", "max_delay"):
            value = getattr(self, name)
            if not _is_number(value) or value < 0:
                raise ConfigError(f"RetryPolicy.{name}: seconds from 0, got {value!r}")
        if not _is_number(self.factor) or self.factor < 1:
            raise ConfigError(f"RetryPolicy.factor: a number from 1, got {self.factor!r}")
        if not _is_number(self.jitter) or not 0 <= self.jitter <= 0.5:
            raise ConfigError(f"RetryPolicy.jitter: a share from 0 to 0.5, got {self.jitter!r}")
        for name in ("backoff", "full_jitter"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"RetryPolicy.{name}: True or False, got {getattr(self, name)!r}")
        for name in ("on", "give_up_on"):
            # One class alone is what everybody writes first; isinstance() takes tuples only.
            value = getattr(self, name)
            classes = tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else (value,)
            for item in classes:
                if not (isinstance(item, type) and issubclass(item, BaseException)):
                    raise ConfigError(f"RetryPolicy.{name}: exception classes, got {item!r}")
            object.__setattr__(self, name, classes)

    def wants(self, exc: BaseException) -> bool:
        """Whether this exception retries by itself."""
        return isinstance(exc, self.on) and not isinstance(exc, self.give_up_on)

    def exhausted(self, retries: int) -> bool:
        """Whether a run that has been retried `retries` times has none left."""
        return self.max_retries is not None and retries >= self.max_retries

    def wait(self, retries: int, random: Random) -> float:
        """Seconds before retry number `retries` + 1."""
        base = self.delay
        if self.backoff:
            base = min(self.max_delay, self._grown(retries))
        if self.full_jitter:
            return random.uniform(0, base)
        return base * (1 + random.uniform(-self.jitter, self.jitter))

    def _grown(self, retries: int) -> float:
        try:
            return self.delay * float(self.factor) ** retries
        except OverflowError:  # a task retried without end
            return math.inf if self.delay else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def check_retry_priority(value: object, where: str) -> RetryPriority:
    """`keep` or `lower`; `ConfigError` otherwise."""
    if value not in RETRY_PRIORITIES:
        raise ConfigError(f"{where}: retry_priority is 'keep' or 'lower', got {value!r}")
    return value  # type: ignore[return-value]


def retry_priority(priority: int, rule: RetryPriority) -> int:
    """The priority of the next try: kept, or one level lower and never below -9 (P5)."""
    return priority if rule == "keep" else max(MIN_PRIORITY, priority - 1)
