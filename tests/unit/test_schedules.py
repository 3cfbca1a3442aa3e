"""When a schedule is due: cron fields, days, changes of the clocks, intervals."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmq import cronfields
from taskmq.cronfields import DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH_OF_YEAR, parse
from taskmq.errors import ConfigError
from taskmq.schedules import Cron, Every, due, remaining

UTC = timezone.utc
NEW_YORK = ZoneInfo("America/New_York")
# Zones whose clocks leap by an hour, by half of one, by two, over midnight, and not at all.
ZONES = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Africa/Cairo",
    "America/Havana",
    "Asia/Kathmandu",
    "UTC",
]


def following(cron: Cron, start: datetime, zone: ZoneInfo, count: int) -> list[str]:
    """The next moments, as the clocks show them."""
    found = []
    for _ in range(count):
        start = cron.after(start, zone)
        found.append(start.isoformat(timespec="minutes"))
    return found


# -- fields ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "field", "values"),
    [
        ("*", HOUR, set(range(24))),
        (5, MINUTE, {5}),
        ("5", MINUTE, {5}),
        ([1, 2], MINUTE, {1, 2}),
        (range(3), MINUTE, {0, 1, 2}),
        ("1, 2", MINUTE, {1, 2}),
        ("*/20", MINUTE, {0, 20, 40}),
        ("*/90", MINUTE, {0}),
        ("10-50/20,5", MINUTE, {10, 30, 50, 5}),
        ("55-5", MINUTE, {55, 56, 57, 58, 59, 0, 1, 2, 3, 4, 5}),
        ("55-5/4", MINUTE, {55, 59, 3}),
        ("*/10", DAY_OF_MONTH, {1, 11, 21, 31}),
        ("sun", DAY_OF_WEEK, {0}),
        ("Sunday,thurs", DAY_OF_WEEK, {0, 4}),
        ("fri-sun", DAY_OF_WEEK, {5, 6, 0}),
        ("mon-5", DAY_OF_WEEK, {1, 2, 3, 4, 5}),
        ("nov-FEB", MONTH_OF_YEAR, {11, 12, 1, 2}),
        ("sept", MONTH_OF_YEAR, {9}),
    ],
)
def test_field_is_a_set_of_numbers(spec: Any, field: cronfields.Field, values: set[int]) -> None:
    assert parse(spec, field) == values


@pytest.mark.parametrize(
    ("spec", "field", "told"),
    [
        ("60", MINUTE, "cron minute: 0 to 59, got 60"),
        (-1, MINUTE, "cron minute: 0 to 59, got -1"),
        ([5, 70], MINUTE, "got 70"),
        ("", MINUTE, "got ''"),
        ("1,,2", MINUTE, "got ''"),
        ("mon", MINUTE, "got 'mon'"),
        ("su", DAY_OF_WEEK, r"0 to 6 or sun to sat, got 'su'"),
        ("7", DAY_OF_WEEK, "got 7"),
        ("mondy", DAY_OF_WEEK, "Did you mean 'monday'"),
        ("0", DAY_OF_MONTH, "1 to 31, got 0"),
        ("5/2", MINUTE, r"'/' follows '\*' or a range, got '5/2'"),
        ("*/0", MINUTE, r"a step is an int from 1, got '\*/0'"),
        ("1-9/x", MINUTE, "a step is an int from 1"),
        ("1-10/3/2", MINUTE, "a step is an int from 1"),
        ("*-5", MINUTE, r"got '\*'"),
        ("-5", MINUTE, "got ''"),
        ("٣", MINUTE, "got '٣'"),
    ],
)
def test_field_that_is_not_accepted_is_named_with_its_value(
    spec: Any, field: cronfields.Field, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        parse(spec, field)


@pytest.mark.parametrize("spec", [5.0, None, True, b"5", {5: 5}, [], [5, "6"], [True]])
def test_field_of_another_kind_is_a_type_error(spec: Any) -> None:
    with pytest.raises(TypeError, match="cron hour: an int, a text"):
        parse(spec, HOUR)


# -- days -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # Both restrictions of the day hold: the Saturday of the first week.
        ((0, 22, "sat", "1-7"), ["2026-08-01T22:00", "2026-09-05T22:00"]),
        ((0, 0, "*", 31), ["2026-08-31T00:00", "2026-10-31T00:00"]),
        ((5, 4, "*", 29, "feb"), ["2028-02-29T04:05", "2032-02-29T04:05"]),
        ((0, "*", "sun"), ["2026-08-02T00:00", "2026-08-02T01:00"]),
        ((59, 23, "*", 31, 12), ["2026-12-31T23:59", "2027-12-31T23:59"]),
    ],
)
def test_days_of_month_and_week_both_count(fields: tuple[Any, ...], expected: list[str]) -> None:
    start = datetime(2026, 7, 31, 23, 30, tzinfo=UTC)

    found = following(Cron.of(*fields), start, ZoneInfo("UTC"), 2)

    assert [moment.removesuffix("+00:00") for moment in found] == expected


def test_leap_day_on_one_weekday_is_found_over_a_century() -> None:
    cron = Cron.of(0, 0, "mon", 29, "feb")

    # 2100 has none, so the next one that is a Monday comes after 40 years.
    assert cron.after(datetime(2072, 2, 29, tzinfo=UTC), UTC).year == 2112


def test_days_that_no_month_has_and_sets_that_are_wrong_are_refused() -> None:
    with pytest.raises(ConfigError, match="day_of_month 31 never comes in month_of_year 2,4"):
        Cron.of(day_of_month=31, month_of_year="2,4")
    everything = Cron.of()
    for wrong, told in ((frozenset[int](), "at least one"), (frozenset({24}), "0 to 23")):
        with pytest.raises(ConfigError, match=f"cron hour: {told}"):
            Cron(
                minutes=everything.minutes,
                hours=wrong,
                weekdays=everything.weekdays,
                days=everything.days,
                months=everything.months,
            )


# -- changes of the clocks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((30, 2), ["2026-03-08T03:30-04:00", "2026-03-09T02:30-04:00"]),
        ((0, "*"), ["2026-03-08T00:00-05:00", "2026-03-08T01:00-05:00", "2026-03-08T03:00-04:00"]),
        ((30, "2,3"), ["2026-03-08T03:30-04:00", "2026-03-09T02:30-04:00"]),
    ],
)
def test_day_on_which_clocks_leap_forward(fields: tuple[Any, ...], expected: list[str]) -> None:
    start = datetime(2026, 3, 7, 23, 30, tzinfo=NEW_YORK)

    assert following(Cron.of(*fields), start, NEW_YORK, len(expected)) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((30, 1), ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"]),
        ((0, "*"), ["2026-11-01T01:00-04:00", "2026-11-01T01:00-05:00", "2026-11-01T02:00-05:00"]),
        ((30, "1,2"), ["2026-11-01T01:30-04:00", "2026-11-01T02:30-05:00"]),
    ],
)
def test_day_on_which_an_hour_is_repeated(fields: tuple[Any, ...], expected: list[str]) -> None:
    start = datetime(2026, 11, 1, 0, 45, tzinfo=NEW_YORK)

    assert following(Cron.of(*fields), start, NEW_YORK, len(expected)) == expected


@pytest.mark.parametrize(("day", "runs"), [((3, 8), 23), ((11, 1), 25), ((6, 1), 24)])
def test_every_hour_follows_elapsed_time(day: tuple[int, int], runs: int) -> None:
    start = datetime(2026, *day, tzinfo=NEW_YORK) - timedelta(minutes=1)
    shown = following(Cron.of(0), start, NEW_YORK, 30)

    assert sum(moment.startswith(f"2026-{day[0]:02}-{day[1]:02}") for moment in shown) == runs


def test_clocks_that_go_back_over_midnight() -> None:
    # Until 2011 they went from 00:01 to 23:01 of the day before.
    zone = ZoneInfo("America/St_Johns")
    start = datetime(2010, 11, 7, 2, 25, tzinfo=UTC)

    found = following(Cron.of("*/30", "*", "sun"), start, zone, 4)

    assert found == [
        "2010-11-07T00:00-02:30",
        "2010-11-07T00:00-03:30",
        "2010-11-07T00:30-03:30",
        "2010-11-07T01:00-03:30",
    ]


@given(
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),
    minutes=st.sets(st.integers(0, 59), min_size=1, max_size=3),
    hours=st.one_of(st.just("*"), st.sets(st.integers(0, 23), min_size=1, max_size=3)),
    weekday=st.sampled_from(["*", "mon-fri", "sun"]),
)
def test_next_moment_is_later_shows_the_fields_and_leaves_none_out(
    zone: ZoneInfo, start: datetime, minutes: set[int], hours: Any, weekday: str
) -> None:
    cron = Cron.of(minutes, hours, weekday)
    moment = start.replace(tzinfo=UTC)

    found = cron.after(moment, zone)

    assert found.astimezone(UTC) > moment
    assert (found.second, found.microsecond) == (0, 0)
    assert found.isoweekday() % 7 in cron.weekdays
    # Where clocks leap over a time with fixed hours, it is shown an hour later (or what they leapt).
    assert found.minute in cron.minutes or zone.key == "Australia/Lord_Howe"
    # Nothing lies between: asked from just before it, the answer is the same.
    just_before = found.astimezone(UTC) - timedelta(microseconds=1)
    assert cron.after(max(moment, just_before), zone) == found


# -- intervals ------------------------------------------------------------------------------------


def test_interval_counts_elapsed_time_over_a_change_of_the_clocks() -> None:
    before = datetime(2026, 11, 1, 0, 30, tzinfo=NEW_YORK)

    after = Every(seconds=7200).after(before, NEW_YORK)

    assert after.isoformat() == "2026-11-01T01:30:00-05:00"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (30, "12:01:15.500000"),
        (60, "12:01:00"),
        (5400, "13:00:00"),
        (86_400, "00:00:00"),
    ],
)
def test_rounded_interval_is_cut_down_to_its_largest_unit(seconds: float, expected: str) -> None:
    moment = datetime(2026, 3, 10, 12, 0, 45, 500_000, tzinfo=UTC)

    found = Every(seconds=seconds, rounded=True).after(moment, UTC)

    assert found.time().isoformat() == expected


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
def test_interval_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigError, match=r"Every\.seconds"):
        Every(seconds=seconds)


# -- due ------------------------------------------------------------------------------------------


def test_remaining_time_is_below_zero_once_it_has_passed() -> None:
    now = datetime(2026, 3, 10, 12, 0, 30, tzinfo=UTC)

    assert remaining(Every(seconds=60), now, now, UTC) == timedelta(seconds=60)
    assert remaining(Every(seconds=60), now - timedelta(seconds=70), now, UTC) == timedelta(
        seconds=-10
    )


def test_due_compares_moments_and_not_what_the_clocks_show() -> None:
    # 01:50 in summer time is before 01:10 in winter time.
    last = datetime(2026, 11, 1, 1, 50, fold=0, tzinfo=NEW_YORK)
    now = datetime(2026, 11, 1, 1, 10, fold=1, tzinfo=NEW_YORK)

    assert due(Every(seconds=1200), last, now, NEW_YORK) == (True, 1200.0)
    assert due(Every(seconds=1260), last, now, NEW_YORK) == (False, 60.0)
    assert due(Cron.of(0), last, now, NEW_YORK) == (True, 50 * 60.0)


@pytest.mark.parametrize(
    ("minutes_ago", "deadline", "expected"),
    [
        (180, None, (True, 240.0)),
        (180, 60, (True, 240.0)),
        (180, 59, (False, 240.0)),
        (0, 600, (False, 240.0)),
    ],
)
def test_deadline_bounds_what_is_made_up_for(
    minutes_ago: int, deadline: float | None, expected: tuple[bool, float]
) -> None:
    now = datetime(2026, 3, 10, 12, 1, 0, tzinfo=UTC)
    last = now - timedelta(minutes=minutes_ago)

    assert due(Cron.of("*/5"), last, now, UTC, deadline=deadline) == expected
