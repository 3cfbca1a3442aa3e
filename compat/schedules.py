"""Schedules of periodic tasks: `crontab`, `schedule`, and what reads them.

Values that say when a task is due. The process that submits periodic tasks is not there yet; a worker's
start and `taskmq doctor` say so of the entries a project has. Source: Celery's "Periodic Tasks" guide.
Where clocks change they differ from Celery's on purpose, see `taskmq.schedules`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from taskmq.compat._state import app_or_default
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.compat.utils.time import humanize_seconds, maybe_make_aware
from taskmq.cronfields import DAY_OF_WEEK, MONTH_OF_YEAR, Field, parse
from taskmq.errors import ConfigError
from taskmq.schedules import Cron, Every, Schedule, due, remaining

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = (
    "BaseSchedule",
    "ParseException",
    "crontab",
    "crontab_parser",
    "maybe_schedule",
    "schedstate",
    "schedule",
    "solar",
)


class ParseException(ImproperlyConfigured, ValueError):
    """A field of a crontab is not one that is accepted."""


class schedstate(NamedTuple):  # noqa: N801 - Celery's name
    """Whether a task is due, and the seconds until it is worth asking again."""

    is_due: bool
    next: float


class BaseSchedule(ABC):
    """What all schedules have in common; for subclasses that fill in `is_due` and `remaining_estimate`.

    `nowfun` gives the time in place of the app's clock. `tz` is the zone that wall-clock times are in, the
    app's unless it is set.
    """

    def __init__(self, nowfun: Callable[[], datetime] | None = None, app: Any = None) -> None:
        self.nowfun = nowfun
        self._app: Celery | None = app
        self._tz: tzinfo | None = None

    @property
    def app(self) -> Celery:
        """The app it belongs to, else the current one."""
        return app_or_default(self._app)

    @app.setter
    def app(self, app: Celery | None) -> None:
        self._app = app

    @property
    def tz(self) -> tzinfo:
        """The zone of wall-clock times."""
        return self._tz or self.app.timezone

    @tz.setter
    def tz(self, zone: tzinfo | None) -> None:
        self._tz = zone

    @property
    def utc_enabled(self) -> bool:
        """The setting `enable_utc`."""
        return bool(self.app.conf.enable_utc)

    def now(self) -> datetime:
        """The time."""
        return (self.nowfun or self.app.now)()

    def to_local(self, dt: datetime) -> datetime:
        """A moment in the zone of this schedule."""
        return dt.astimezone(self.tz)

    def maybe_make_aware(self, dt: datetime, naive_as_utc: bool = True) -> datetime:
        """A moment in the zone of this schedule; a naive one is in UTC, or in that zone."""
        aware = maybe_make_aware(dt) if naive_as_utc else maybe_make_aware(dt, self.tz)
        return self.to_local(aware)

    @abstractmethod
    def remaining_estimate(self, last_run_at: datetime) -> timedelta:
        """The time until it is due again, below 0 once it is, for a task that ran then."""

    @abstractmethod
    def is_due(self, last_run_at: datetime) -> Any:
        """`schedstate(is_due, next)` for a task that ran then."""


class _OfEngine(BaseSchedule):
    """A schedule that the engine's values say everything about."""

    def _schedule(self) -> Schedule:
        raise NotImplementedError

    def _deadline(self) -> float | None:
        return None

    def remaining_estimate(self, last_run_at: datetime) -> timedelta:
        """The time until it is due again, below 0 once it is, for a task that ran then."""
        last, now = self.maybe_make_aware(last_run_at), self.maybe_make_aware(self.now())
        return remaining(self._schedule(), last, now, self.tz)

    def is_due(self, last_run_at: datetime) -> schedstate:
        """`schedstate(is_due, next)` for a task that ran then; `next` in seconds."""
        last, now = self.maybe_make_aware(last_run_at), self.maybe_make_aware(self.now())
        return schedstate(*due(self._schedule(), last, now, self.tz, deadline=self._deadline()))


class schedule(_OfEngine):  # noqa: N801 - Celery's name
    """Every `run_every` (seconds or a timedelta) after the last run.

    With `relative` the time is cut down to the whole day, hour or minute, whichever fits the interval.
    """

    def __init__(
        self,
        run_every: float | timedelta | None = None,
        relative: bool = False,
        nowfun: Callable[[], datetime] | None = None,
        app: Any = None,
    ) -> None:
        super().__init__(nowfun, app)
        if isinstance(run_every, (int, float)) and not isinstance(run_every, bool):
            run_every = timedelta(seconds=run_every)
        if run_every is not None and not isinstance(run_every, timedelta):
            raise ImproperlyConfigured(f"schedule: seconds or a timedelta, got {run_every!r}")
        self.run_every = run_every
        self.relative = relative

    def _schedule(self) -> Every:
        return Every(seconds=self.seconds, rounded=self.relative)

    @property
    def seconds(self) -> float:
        """The interval in seconds, 0 for one below 0."""
        if self.run_every is None:
            raise ImproperlyConfigured(
                f"{type(self).__name__}: run_every is not set, and nothing else says when it is due"
            )
        return max(self.run_every.total_seconds(), 0)

    @property
    def human_seconds(self) -> str:
        """The interval in words."""
        return humanize_seconds(self.seconds)

    def __repr__(self) -> str:
        return f"<freq: {'not set' if self.run_every is None else self.human_seconds}>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, schedule):
            return self.run_every == other.run_every
        return self.run_every == other

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return type(self), (self.run_every, self.relative, self.nowfun)


class crontab(_OfEngine):  # noqa: N801 - Celery's name
    """At the minutes, hours and days that all five fields name, in the zone `tz`.

    A field is a number, an iterable of numbers, or text: `"*"`, `"*/15"`, `"1,15"`, `"7-9"`, `"mon-fri"`.
    Weekdays count from Sunday, 0. Raises `ParseException` (a ValueError) naming the field, `TypeError`
    for a value of another kind.
    """

    def __init__(
        self,
        minute: Any = "*",
        hour: Any = "*",
        day_of_week: Any = "*",
        day_of_month: Any = "*",
        month_of_year: Any = "*",
        nowfun: Callable[[], datetime] | None = None,
        app: Any = None,
    ) -> None:
        super().__init__(nowfun, app)
        self._orig_minute = minute
        self._orig_hour = hour
        self._orig_day_of_week = day_of_week
        self._orig_day_of_month = day_of_month
        self._orig_month_of_year = month_of_year
        try:
            self._cron = Cron.of(minute, hour, day_of_week, day_of_month, month_of_year)
        except ConfigError as exc:
            raise ParseException(str(exc)) from None

    @classmethod
    def from_string(cls, crontab: str) -> Any:
        """From a line of cron: minute, hour, day of the month, month, weekday."""
        fields = crontab.split()
        if len(fields) != 5:
            raise ParseException(f"crontab: five fields, as in '0 22 * * mon', got {crontab!r}")
        minute, hour, day_of_month, month_of_year, day_of_week = fields
        return cls(minute, hour, day_of_week, day_of_month, month_of_year)

    def _schedule(self) -> Cron:
        return self._cron

    def _deadline(self) -> float | None:
        value = self.app.conf.beat_cron_starting_deadline
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise ImproperlyConfigured(f"beat_cron_starting_deadline: seconds, got {value!r}")
        return float(value)

    @property
    def minute(self) -> set[int]:
        """The minutes."""
        return set(self._cron.minutes)

    @property
    def hour(self) -> set[int]:
        """The hours."""
        return set(self._cron.hours)

    @property
    def day_of_week(self) -> set[int]:
        """The weekdays, Sunday is 0."""
        return set(self._cron.weekdays)

    @property
    def day_of_month(self) -> set[int]:
        """The days of the month."""
        return set(self._cron.days)

    @property
    def month_of_year(self) -> set[int]:
        """The months."""
        return set(self._cron.months)

    def _fields(self) -> tuple[Any, ...]:
        return (
            self._orig_minute,
            self._orig_hour,
            self._orig_day_of_week,
            self._orig_day_of_month,
            self._orig_month_of_year,
        )

    def __repr__(self) -> str:
        minute, hour, day_of_week, day_of_month, month_of_year = self._fields()
        return (
            f"<crontab: {minute} {hour} {day_of_month} {month_of_year} {day_of_week} (m/h/dM/MY/d)>"
        )

    def __eq__(self, other: object) -> bool:
        return self._cron == other._cron if isinstance(other, crontab) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return type(self), self._fields()


class solar(BaseSchedule):  # noqa: N801 - Celery's name
    """Sunrise, sunset and the like: not there yet, and says so when it is made."""

    def __new__(cls, event: str, lat: float, lon: float, **kwargs: Any) -> solar:
        raise ImproperlyConfigured(
            f"solar({event!r}, {lat!r}, {lon!r}): schedules by the sun are not there yet; let a task that a "
            "crontab starts shortly before work out the time and submit with eta="
        )


class crontab_parser:  # noqa: N801 - Celery's name
    """Parses one field whose values are `min_` and the `max_ - 1` after it."""

    ParseException = ParseException

    def __init__(self, max_: int = 60, min_: int = 0) -> None:
        self.max_ = max_
        self.min_ = min_
        bounds = (min_, min_ + max_ - 1)
        known = (DAY_OF_WEEK, MONTH_OF_YEAR)
        names = next((field.names for field in known if (field.low, field.high) == bounds), ())
        self._field = Field("field", *bounds, names)

    def parse(self, spec: str) -> set[int]:
        """The values of a text; `ParseException` for one that is not accepted."""
        try:
            return set(parse(spec, self._field))
        except ConfigError as exc:
            raise ParseException(str(exc)) from None


def maybe_schedule(s: Any, relative: bool = False, app: Any = None) -> Any:
    """Seconds or a timedelta as a `schedule`; a schedule as it is, of that app."""
    if isinstance(s, BaseSchedule):
        if app is not None:
            s.app = app
        return s
    if isinstance(s, timedelta) or (isinstance(s, (int, float)) and not isinstance(s, bool)):
        return schedule(s, relative, app=app)
    if callable(getattr(s, "is_due", None)):
        return s
    raise ImproperlyConfigured(f"a schedule is seconds, a timedelta or a crontab, got {s!r}")
