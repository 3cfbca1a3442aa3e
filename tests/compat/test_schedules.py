"""`celery.schedules`: what is accepted, shown, equal and due. Times of the day are the engine's own tests."""

from __future__ import annotations

import pickle
from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from taskmq.compat import Celery
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.compat.schedules import (
    BaseSchedule,
    ParseException,
    crontab,
    crontab_parser,
    maybe_schedule,
    schedstate,
    schedule,
    solar,
)
from taskmq.errors import ConfigError

NOON = datetime(2026, 3, 10, 12, 0, 30, tzinfo=timezone.utc)


def at_noon() -> datetime:
    return NOON


def ago(seconds: float) -> datetime:
    return NOON - timedelta(seconds=seconds)


# -- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (0, (False, 60.0)),
        (59, (False, 1.0)),
        (60, (True, 60.0)),
        (200, (True, 60.0)),
    ],
)
def test_interval_is_due_so_long_after_the_last_run(
    app: Celery, since: float, expected: tuple[bool, float]
) -> None:
    every = schedule(60, nowfun=at_noon, app=app)

    state = every.is_due(ago(since))

    assert state == expected
    assert isinstance(state, schedstate)
    assert every.remaining_estimate(ago(since)) == timedelta(seconds=60 - since)


def test_relative_interval_falls_on_the_whole_minute(app: Celery) -> None:
    every = schedule(60, relative=True, nowfun=at_noon, app=app)

    assert every.is_due(ago(0)) == (False, 30.0)
    assert every.is_due(ago(31)) == (True, 30.0)


@pytest.mark.parametrize(
    ("run_every", "shown"),
    [
        (30, "30.00 seconds"),
        (1, "1.00 second"),
        (90, "1.50 minutes"),
        (timedelta(hours=2), "2.00 hours"),
        (timedelta(days=1), "1.00 day"),
        (0, "now"),
        (-5, "now"),
    ],
)
def test_interval_is_shown_in_its_largest_unit(run_every: Any, shown: str) -> None:
    assert repr(schedule(run_every)) == f"<freq: {shown}>"


def test_intervals_are_equal_by_their_length() -> None:
    assert schedule(5) == schedule(timedelta(seconds=5))
    assert schedule(5) != schedule(6)
    assert schedule(5) == timedelta(seconds=5)
    assert pickle.loads(pickle.dumps(schedule(5, relative=True))).relative is True


@pytest.mark.parametrize("value", ["5", True, [5]])
def test_interval_of_another_kind_is_refused(value: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="seconds or a timedelta"):
        schedule(value)


def test_interval_without_a_length_says_so_when_it_is_asked(app: Celery) -> None:
    every = schedule(app=app)

    assert repr(every) == "<freq: not set>"
    with pytest.raises(ImproperlyConfigured, match="run_every"):
        every.is_due(NOON)


# -- crontabs -------------------------------------------------------------------------------------


def test_crontab_has_its_fields_as_sets_and_shows_them_as_they_were_written() -> None:
    cron = crontab("*/15", "7-9,18", "mon-fri", [1, 15], "jan,feb")

    assert (cron.minute, cron.hour) == ({0, 15, 30, 45}, {7, 8, 9, 18})
    assert (cron.day_of_week, cron.day_of_month) == ({1, 2, 3, 4, 5}, {1, 15})
    assert cron.month_of_year == {1, 2}
    assert repr(cron) == "<crontab: */15 7-9,18 [1, 15] jan,feb mon-fri (m/h/dM/MY/d)>"


def test_crontab_from_a_line_of_cron() -> None:
    cron = crontab.from_string("*/5 1 2 3 mon")

    assert cron == crontab("*/5", 1, "mon", 2, 3)
    with pytest.raises(ValueError, match=r"five fields.*'@daily'"):
        crontab.from_string("@daily")


def test_crontabs_are_equal_by_what_they_mean() -> None:
    assert crontab("0", "0") == crontab(0, 0)
    assert crontab("*/30") == crontab([0, 30])
    assert crontab(0) != crontab(1)
    assert crontab(0) != 5
    assert pickle.loads(pickle.dumps(crontab("*/5", day_of_week="sun"))) == crontab(
        "*/5", day_of_week=0
    )


@pytest.mark.parametrize("bad", ["60", "*/0", "", "a", "5/2", "-1", "1-", -1, [70]])
def test_field_that_is_not_accepted_is_a_parse_exception_and_a_value_error(bad: Any) -> None:
    with pytest.raises(ParseException, match="cron minute") as caught:
        crontab(minute=bad)

    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("bad", [5.5, None, True, b"1", {"a": 1}, ["1"], []])
def test_field_of_another_kind_is_a_type_error(bad: Any) -> None:
    with pytest.raises(TypeError, match="cron minute"):
        crontab(minute=bad)


def test_days_that_never_come_are_refused() -> None:
    with pytest.raises(ValueError, match="day_of_month 30,31 never comes in month_of_year 2"):
        crontab(0, 0, day_of_month="30-31", month_of_year="feb")


@pytest.mark.parametrize(
    ("since", "expected"),
    [(0, (False, 270.0)), (30, (False, 270.0)), (31, (True, 270.0)), (1000, (True, 270.0))],
)
def test_crontab_is_due_once_a_time_has_passed(
    app: Celery, since: float, expected: tuple[bool, float]
) -> None:
    cron = crontab("*/5", nowfun=at_noon, app=app)

    assert cron.is_due(ago(since)) == expected


def test_naive_time_of_the_last_run_is_in_utc(app: Celery) -> None:
    app.conf.timezone = "Asia/Tokyo"
    cron = crontab("*/5", nowfun=at_noon, app=app)

    assert cron.is_due(datetime(2026, 3, 10, 11, 59, 59)) == (True, 270.0)
    assert cron.is_due(datetime(2026, 3, 10, 12, 0, 0)) == (False, 270.0)


@pytest.mark.parametrize(
    ("now", "due"),
    [(timedelta(seconds=60), True), (timedelta(seconds=61), False), (timedelta(minutes=5), True)],
)
def test_time_missed_by_more_than_the_deadline_is_not_made_up_for(
    app: Celery, now: timedelta, due: bool
) -> None:
    app.conf.beat_cron_starting_deadline = 60
    start = datetime(2026, 3, 10, 12, 0, 0, tzinfo=timezone.utc)
    cron = crontab("*/5", nowfun=lambda: start + now, app=app)

    assert cron.is_due(start - timedelta(hours=3)).is_due is due


def test_deadline_that_is_no_number_of_seconds_is_refused(app: Celery) -> None:
    app.conf.beat_cron_starting_deadline = "60"

    with pytest.raises(ImproperlyConfigured, match="beat_cron_starting_deadline"):
        crontab(nowfun=at_noon, app=app).is_due(NOON)


def test_wall_clock_is_that_of_the_app_or_of_the_schedule(app: Celery) -> None:
    app.conf.timezone = "Asia/Tokyo"
    cron = crontab(0, 0, nowfun=at_noon, app=app)

    assert cron.remaining_estimate(NOON) == timedelta(hours=2, minutes=59, seconds=30)
    cron.tz = ZoneInfo("Europe/Paris")
    assert cron.remaining_estimate(NOON) == timedelta(hours=10, minutes=59, seconds=30)
    assert cron.to_local(NOON).hour == 13


def test_repeated_hour_of_an_hourly_crontab_is_run_too(app: Celery) -> None:
    now = datetime(2026, 11, 1, 9, 0, tzinfo=timezone.utc)
    cron = crontab("0", nowfun=lambda: now, app=app)
    cron.tz = ZoneInfo("US/Pacific")

    assert cron.is_due(now - timedelta(hours=1)).is_due


def test_clock_is_the_apps_without_a_function(app: Celery) -> None:
    assert schedule(60, app=app).now() == app.now()
    assert schedule(60).app is app
    assert schedule(60, app=app).utc_enabled is True


# -- the rest -------------------------------------------------------------------------------------


def test_schedule_of_ones_own(app: Celery) -> None:
    class Never(BaseSchedule):
        def remaining_estimate(self, last_run_at: datetime) -> timedelta:
            return timedelta.max

        def is_due(self, last_run_at: datetime) -> Any:
            return schedstate(False, 60)

    mine = Never()

    assert maybe_schedule(mine, app=app) is mine
    assert mine.app is app


def test_what_stands_for_a_schedule(app: Celery) -> None:
    assert maybe_schedule(30, app=app) == schedule(30)
    assert maybe_schedule(timedelta(hours=1)) == schedule(3600)
    cron = crontab()
    assert maybe_schedule(cron) is cron
    for wrong in ("x", None, True):
        with pytest.raises(ImproperlyConfigured, match="a schedule is"):
            maybe_schedule(wrong)


def test_parser_of_one_field() -> None:
    assert crontab_parser(60).parse("*/15") == {0, 15, 30, 45}
    assert crontab_parser(7).parse("fri-sun") == {5, 6, 0}
    assert crontab_parser(12, 1).parse("nov-feb") == {11, 12, 1, 2}
    assert crontab_parser(31, 1).parse("*/10") == {1, 11, 21, 31}
    with pytest.raises(crontab_parser.ParseException):
        crontab_parser(24).parse("mon")


def test_schedule_by_the_sun_says_that_it_is_not_there_yet() -> None:
    make: Any = solar

    with pytest.raises(ImproperlyConfigured, match=r"solar\('sunset', 1, 2\).*not there yet"):
        make("sunset", 1, 2)
