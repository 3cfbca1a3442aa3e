"""Times as call options write them, and the wait between automatic retries."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo
from random import Random, SystemRandom
from typing import Any

__all__ = (
    "maybe_timedelta",
    "maybe_iso8601",
    "is_naive",
    "make_aware",
    "maybe_make_aware",
    "to_utc",
    "get_exponential_backoff_interval",
    "humanize_seconds",
)

_RANDOM: Random = SystemRandom()


def maybe_timedelta(value: Any) -> Any:
    """A number of seconds as a timedelta; anything else as it is."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return timedelta(seconds=value)
    return value


def maybe_iso8601(value: datetime | str | None) -> datetime | None:
    """ISO 8601 text as a datetime; a datetime or None as it is. Raises ValueError for other text."""
    if not value:
        return None
    if isinstance(value, datetime):
        return value
    # fromisoformat reads a trailing Z only from Python 3.11 on
    return datetime.fromisoformat(value[:-1] + "+00:00" if value.endswith("Z") else value)


def is_naive(value: datetime) -> bool:
    """Whether a datetime names no time zone."""
    return value.tzinfo is None or value.tzinfo.utcoffset(value) is None


def make_aware(value: datetime, tz: tzinfo) -> datetime:
    """A naive datetime as one of that zone."""
    return value.replace(tzinfo=tz)


def maybe_make_aware(value: datetime, tz: tzinfo | None = None) -> datetime:
    """A naive datetime as one of that zone (UTC by default); an aware one as it is."""
    return make_aware(value, tz or timezone.utc) if is_naive(value) else value


def to_utc(value: datetime) -> datetime:
    """A datetime in UTC; a naive one is taken for UTC."""
    return maybe_make_aware(value).astimezone(timezone.utc)


def get_exponential_backoff_interval(
    factor: int,
    retries: int,
    maximum: int,
    full_jitter: bool = False,
    *,
    random: Random = _RANDOM,
) -> int:
    """Seconds before the next automatic retry: `factor * 2**retries`, at most `maximum`.

    With `full_jitter` a number drawn evenly from 0 to that, so a wait of 0 is normal. Source: Celery's
    task guide, "Automatic retry for known exceptions".
    """
    # The exponent is capped: a task retried without end must not build a number of a thousand digits.
    countdown: int = min(maximum, factor * 2 ** min(retries, 64))
    if full_jitter:
        return random.randrange(max(countdown, 0) + 1)
    return max(0, countdown)


def humanize_seconds(
    seconds: float, prefix: str = "", sep: str = "", now: str = "now", microseconds: bool = False
) -> str:
    """A number of seconds in the largest unit it fills: `1.50 minutes`, and `now` for less than one.

    `prefix` and `sep` come before it; with `microseconds` a fraction of a second is shown as such.
    """
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
        if seconds >= size:
            number = seconds / size
            return f"{prefix}{sep}{number:.2f} {unit}{'' if number == 1 else 's'}"
    if microseconds and 0 < seconds < 1:
        return f"{prefix}{sep}{seconds:.2f} seconds"
    return now
