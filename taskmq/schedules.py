"""When a periodic task is due: values that say which moment comes after another. Pure.

A `Cron` means wall-clock time in a zone. Where the clocks change, one with fixed hours runs once on that day
(a time that the clocks leap over is taken as if they had not, 02:30 becomes 03:30; of a repeated hour the
first counts), and one for every hour follows elapsed time: 25 runs on the long day, 23 on the short one. An
`Every` counts elapsed time. All moments are aware datetimes.
"""

from __future__ import annotations

import calendar
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple

from taskmq.cronfields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH_OF_YEAR,
    parse,
)
from taskmq.errors import ConfigError

__all__ = ["Schedule", "Every", "Cron", "Due", "due", "remaining"]

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
# By how much a change of the clocks may move a wall-clock time within its day, in hours, and then some.
_LEAP_HOURS = 3
# 29 February on one weekday is 40 years apart where a century lies between.
_LONGEST_WAIT = 41 * 366


class Schedule(ABC):
    """Says which moment comes next."""

    @abstractmethod
    def after(self, moment: datetime, zone: tzinfo) -> datetime:
        """The next moment after this one, in `zone`, whose wall clock counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Every(Schedule):
    """Each `seconds` after the last time; 0 means always.

    With `rounded` the moment is cut down to the whole day, hour or minute, the largest of these that
    fits into the interval. Raises `ConfigError` for less than 0.
    """

    seconds: float
    rounded: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.seconds < float("inf"):
            raise ConfigError(f"Every.seconds: a number from 0, got {self.seconds!r}")

    def after(self, moment: datetime, zone: tzinfo) -> datetime:
        found = (moment.astimezone(timezone.utc) + timedelta(seconds=self.seconds)).astimezone(zone)
        if not self.rounded or self.seconds < 60:
            return found
        found = found.replace(second=0, microsecond=0)
        if self.seconds >= 3600:
            found = found.replace(minute=0)
        return found.replace(hour=0) if self.seconds >= 86_400 else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron(Schedule):
    """At these minutes of these hours, on days whose month, day of the month and weekday are all in the sets.

    Weekdays count from Sunday, 0. Both restrictions of the day must hold, as in Celery; cron itself takes
    either. Raises `ConfigError` for days that no month has.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    weekdays: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]

    def __post_init__(self) -> None:
        for values, field in (
            (self.minutes, MINUTE),
            (self.hours, HOUR),
            (self.weekdays, DAY_OF_WEEK),
            (self.days, DAY_OF_MONTH),
            (self.months, MONTH_OF_YEAR),
        ):
            if not values:
                raise ConfigError(f"cron {field.name}: at least one value, got none")
            for value in values:
                field.checked(value)
        # 2024 has a 29 February.
        if not any(min(self.days) <= calendar.monthrange(2024, m)[1] for m in self.months):
            raise ConfigError(
                f"cron: day_of_month {_listed(self.days)} never comes in month_of_year "
                f"{_listed(self.months)}"
            )

    @classmethod
    def of(
        cls,
        minute: Any = "*",
        hour: Any = "*",
        day_of_week: Any = "*",
        day_of_month: Any = "*",
        month_of_year: Any = "*",
    ) -> Cron:
        """From fields as `cronfields.parse` takes them."""
        return cls(
            minutes=parse(minute, MINUTE),
            hours=parse(hour, HOUR),
            weekdays=parse(day_of_week, DAY_OF_WEEK),
            days=parse(day_of_month, DAY_OF_MONTH),
            months=parse(month_of_year, MONTH_OF_YEAR),
        )

    def after(self, moment: datetime, zone: tzinfo) -> datetime:
        moment = moment.astimezone(zone)
        every_hour = len(self.hours) == HOUR.high + 1
        found = self._elapsed(moment, zone) if every_hour else self._fixed(moment, zone)
        return found.astimezone(zone)

    def _elapsed(self, moment: datetime, zone: tzinfo) -> datetime:
        """Minute by minute of elapsed time, over days that do not match at once."""
        since = timedelta(seconds=moment.second, microseconds=moment.microsecond)
        at = moment.astimezone(timezone.utc) - since + _MINUTE
        while True:
            local = at.astimezone(zone)
            if not self._has(local.date()):
                day = next(self._dates_from(local.date() + _DAY))
                # The later one: clocks that go back over midnight show the day before again.
                at = max(at + _MINUTE, _instant(day, 0, 0, zone))
            elif local.minute in self.minutes:
                return at
            else:
                at += _MINUTE

    def _fixed(self, moment: datetime, zone: tzinfo) -> datetime:
        """The first of the wall-clock times of a day that lies after `moment`."""
        utc = moment.astimezone(timezone.utc)
        for day in self._dates_from(moment.date()):
            past = moment.hour - _LEAP_HOURS if day == moment.date() else 0
            times = (
                _instant(day, hour, minute, zone)
                for hour in self.hours
                if hour >= past
                for minute in self.minutes
            )
            found = min((time for time in times if time > utc), default=None)
            if found is not None:
                return found
        raise AssertionError("the days of a Cron do not end")

    def _has(self, day: date) -> bool:
        return (
            day.month in self.months
            and day.day in self.days
            and day.isoweekday() % 7 in self.weekdays
        )

    def _dates_from(self, day: date) -> Iterator[date]:
        waited = 0
        while waited <= _LONGEST_WAIT:
            if self._has(day):
                yield day
                waited = 0
            day += _DAY
            waited += 1


class Due(NamedTuple):
    """Whether it is time, and the seconds until it is worth asking again."""

    due: bool
    seconds: float


def due(
    schedule: Schedule,
    last: datetime,
    now: datetime,
    zone: tzinfo,
    *,
    deadline: float | None = None,
) -> Due:
    """Whether a task that ran at `last` is due.

    With `deadline` in seconds a moment that was missed by more than that is not made up for.
    """
    # In UTC: two datetimes of one zone are compared and subtracted by their wall clocks.
    start, now = last.astimezone(timezone.utc), now.astimezone(timezone.utc)
    if deadline is not None:
        # `after` leaves out the moment it is given.
        start = max(start, now - timedelta(seconds=deadline, microseconds=1))
    left = remaining(schedule, start, now, zone)
    if left <= timedelta(0):
        return Due(True, remaining(schedule, now, now, zone).total_seconds())
    return Due(False, left.total_seconds())


def remaining(schedule: Schedule, last: datetime, now: datetime, zone: tzinfo) -> timedelta:
    """The time from `now` to the moment after `last`; below 0 once that has passed."""
    following = schedule.after(last, zone)
    return following.astimezone(timezone.utc) - now.astimezone(timezone.utc)


def _instant(day: date, hour: int, minute: int, zone: tzinfo) -> datetime:
    """The moment, in UTC, at which the clocks show this for the first time; see the module for leaps."""
    shown = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
    return shown.astimezone(timezone.utc)


def _listed(numbers: frozenset[int]) -> str:
    return ",".join(map(str, sorted(numbers)))
