"""When a failed run is tried again, how long after, and at which priority (P5). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from taskmq.errors import ConfigError
from taskmq.priority import MIN_PRIORITY

RetryPriority = Literal["keep", "lower"]
RETRY_PRIORITIES = ("keep", "lower")


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
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
                raise ConfigError(f"RetryPolicy.{name}: seconds from 0, got {value!r}")
        if not isinstance(self.factor, (int, float)) or not self.factor >= 1:
            raise ConfigError(f"RetryPolicy.factor: a number from 1, got {self.factor!r}")
        if not isinstance(self.jitter, (int, float)) or not 0 <= self.jitter <= 0.5:
            raise ConfigError(f"RetryPolicy.jitter: a share from 0 to 0.5, got {self.jitter!r}")
        for name in ("on", "give_up_on"):
            for item in getattr(self, name):
                if not (isinstance(item, type) and issubclass(item, BaseException)):
                    raise ConfigError(f"RetryPolicy.{name}: exception classes, got {item!r}")

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
            # The exponent is capped so that a task retried without end cannot overflow a float.
            base = min(self.max_delay, self.delay * self.factor ** min(retries, 64))
        if self.full_jitter:
            return random.uniform(0, base)
        return base * (1 + random.uniform(-self.jitter, self.jitter))


def check_retry_priority(value: object, where: str) -> RetryPriority:
    """`keep` or `lower`; `ConfigError` otherwise."""
    if value not in RETRY_PRIORITIES:
        raise ConfigError(f"{where}: retry_priority is 'keep' or 'lower', got {value!r}")
    return value  # type: ignore[return-value]


def retry_priority(priority: int, rule: RetryPriority) -> int:
    """The priority of the next try: kept, or one level lower and never below -9 (P5)."""
    return priority if rule == "keep" else max(MIN_PRIORITY, priority - 1)
