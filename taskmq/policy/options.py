"""A signature's options, each with its type or not at all. Pure.

Read leniently: a signature may come from a Celery producer, and the step it names must run with or
without an option that cannot be read. What our own code writes was checked where it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone
from typing import Any, TypeGuard

from taskmq.codec.values import read_datetime
from taskmq.message import LAST_MOMENT, MAX_COUNT, ConcurrencyKey, Rate
from taskmq.priority import MAX_PRIORITY, MIN_PRIORITY
from taskmq.states import AckMode


class Options:
    """Celery's names, and TaskMQ's own: `ack`, `max_deliveries`, `expires_at`, `rate`, `concurrency`,
    `result_expires`."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, name: str) -> Any:
        """As it is written; None when it is not there."""
        return self._values.get(name)

    def text(self, name: str) -> str | None:
        """Text that is not empty."""
        value = self._values.get(name)
        return value if isinstance(value, str) and value else None

    def count(self, name: str) -> int | None:
        """An int above 0."""
        value = self._values.get(name)
        return value if _is_count(value) else None

    def seconds(self, name: str) -> float | None:
        """A span of time, from 0."""
        value = self._values.get(name)
        return float(value) if _is_number(value) and value >= 0 else None

    def priority(self, fallback: int) -> int:
        """A priority in range, else `fallback`."""
        value = self._values.get("priority")
        if type(value) is int and MIN_PRIORITY <= value <= MAX_PRIORITY:
            return value
        return fallback

    def ack(self, fallback: AckMode) -> AckMode:
        """When it is acknowledged, else `fallback`."""
        try:
            return AckMode(self._values.get("ack"))
        except ValueError:
            return fallback

    def eta(self, now: float) -> float | None:
        """Epoch seconds from `countdown` (seconds from now) or `eta` (epoch seconds or ISO text)."""
        countdown = self.seconds("countdown")
        if countdown is not None:
            return now + countdown
        return _moment(self._values.get("eta"))

    def expires_at(self, now: float) -> float | None:
        """Epoch seconds from `expires_at`, or from `expires` (seconds from now, or ISO text)."""
        at = _moment(self._values.get("expires_at"))
        if at is not None:
            return at
        span = self.seconds("expires")
        return now + span if span is not None else _moment(self._values.get("expires"))

    def rate(self) -> Rate | None:
        """The rate limit, written as [key, seconds between starts]."""
        pair = self._pair("rate")
        if pair is None or not _is_number(pair[1]) or pair[1] <= 0:
            return None
        return Rate(pair[0], float(pair[1]))

    def concurrency(self) -> ConcurrencyKey | None:
        """The concurrency key, written as [key, limit]."""
        pair = self._pair("concurrency")
        if pair is None or not _is_count(pair[1]):
            return None
        return ConcurrencyKey(pair[0], pair[1])

    def headers(self) -> dict[str, Any]:
        """A copy; empty where there are none."""
        value = self._values.get("headers")
        return dict(value) if isinstance(value, Mapping) else {}

    def _pair(self, name: str) -> tuple[str, Any] | None:
        value = self._values.get(name)
        if isinstance(value, (list, tuple)) and len(value) == 2 and isinstance(value[0], str):
            return value[0], value[1]
        return None


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_COUNT


def _is_number(value: Any) -> TypeGuard[float]:
    # The bound also refuses NaN, infinity and ints no float can hold; the seconds of a store end there.
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and -LAST_MOMENT <= value <= LAST_MOMENT
    )


def _moment(value: Any) -> float | None:
    if _is_number(value):
        return float(value)
    if not isinstance(value, str):
        return None
    try:
        moment = read_datetime(value)
    except ValueError:
        return None
    # Celery writes UTC; a time without an offset is one.
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
