"""When a call is due and when it is too late: the options `eta`, `countdown` and `expires`.

A naive datetime is local time, as `datetime.timestamp()` reads it. Numbers are seconds; an absolute one
that can only be milliseconds is refused rather than scheduled for the year 50,000.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from taskmq.errors import ConfigError
from taskmq.message import LAST_MOMENT
from taskmq.options import check_seconds


def due_at(eta: Any, countdown: Any, now: float, where: str) -> float | None:
    """Epoch seconds from `eta` or `countdown`, None for at once; `ConfigError` for both or a bad value."""
    if countdown is not None:
        if eta is not None:
            raise ConfigError(f"{where}: eta or countdown, not both; got {eta!r} and {countdown!r}")
        return now + check_seconds(countdown, f"{where}: countdown")
    if eta is None:
        return None
    return moment(eta, f"{where}: eta")


def expires_at(expires: Any, now: float, where: str) -> float | None:
    """Epoch seconds from seconds-from-now, a timedelta or a datetime; None for never.

    A datetime that has passed is accepted: the task ends as expired.
    """
    if expires is None:
        return None
    if isinstance(expires, datetime):
        return moment(expires, f"{where}: expires")
    return now + check_seconds(expires, f"{where}: expires", above_zero=True)


def moment(value: Any, where: str) -> float:
    """A point in time as epoch seconds; `ConfigError` naming the value otherwise."""
    if isinstance(value, datetime):
        try:
            return value.timestamp()
        except (OverflowError, OSError, ValueError) as exc:
            raise ConfigError(f"{where}: {value!r} is outside the range of this machine") from exc
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if 0 <= value <= LAST_MOMENT:
            return float(value)
        hint = " (seconds, not milliseconds)" if value > LAST_MOMENT else ""
        raise ConfigError(f"{where}: {value!r} is no point in time{hint}")
    hint = "; a span of time is `countdown`" if isinstance(value, timedelta) else ""
    raise ConfigError(f"{where}: a datetime or epoch seconds, got {value!r}{hint}")
