"""`eta`, `countdown` and `expires`: what they accept, and what a message then carries."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from taskmq import App
from taskmq.clock import FakeClock
from taskmq.errors import ConfigError


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose local time is five hours behind UTC."""
    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_message_without_times_is_due_at_once_and_never_expires(app: App) -> None:
    message = app.message("work")

    assert (message.eta, message.expires_at) == (None, None)


def test_countdown_counts_from_now(app: App, clock: FakeClock) -> None:
    assert app.message("work", countdown=90).eta == clock.now() + 90
    assert app.message("work", countdown=timedelta(minutes=2)).eta == clock.now() + 120
    assert app.message("work", countdown=0).eta == clock.now()


def test_eta_takes_an_aware_datetime(app: App) -> None:
    there = timezone(timedelta(hours=9))

    eta = app.message("work", eta=datetime(2030, 1, 1, 9, tzinfo=there)).eta

    assert eta == datetime(2030, 1, 1, tzinfo=timezone.utc).timestamp()


@pytest.mark.usefixtures("elsewhere")
def test_a_naive_eta_is_local_time(app: App) -> None:
    eta = app.message("work", eta=datetime(2030, 1, 1, 9)).eta

    assert eta == datetime(2030, 1, 1, 14, tzinfo=timezone.utc).timestamp()


def test_eta_takes_epoch_seconds(app: App) -> None:
    assert app.message("work", eta=1_900_000_000).eta == 1_900_000_000.0


def test_an_eta_that_has_passed_is_kept(app: App, clock: FakeClock) -> None:
    assert app.message("work", eta=clock.now() - 5).eta == clock.now() - 5


def test_expires_counts_from_now_or_names_a_moment(app: App, clock: FakeClock) -> None:
    moment = datetime(2030, 1, 1, tzinfo=timezone.utc)

    assert app.message("work", expires=10).expires_at == clock.now() + 10
    assert app.message("work", expires=timedelta(hours=1)).expires_at == clock.now() + 3600
    assert app.message("work", expires=moment).expires_at == moment.timestamp()


def test_a_moment_of_expiry_that_has_passed_is_kept(app: App) -> None:
    moment = datetime(2001, 1, 1, tzinfo=timezone.utc)

    assert app.message("work", expires=moment).expires_at == moment.timestamp()


def test_the_expiry_of_the_task_counts_from_each_submit(app: App, clock: FakeClock) -> None:
    @app.task(expires=60)
    def work() -> None: ...

    first = app.message(work)
    clock.advance(100)
    second = app.message(work)

    assert second.expires_at == first.expires_at + 100  # type: ignore[operator]
    assert app.message(work, expires=5).expires_at == clock.now() + 5


def test_eta_and_countdown_exclude_each_other(app: App) -> None:
    with pytest.raises(ConfigError, match="not both"):
        app.message("work", eta=1_900_000_000, countdown=3)


@pytest.mark.parametrize("option", ["eta", "countdown", "expires"])
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, -1, True, "10", b"1", [1], pytest.param(10**400, id="huge")],
)
def test_a_bad_time_is_refused_naming_option_and_value(
    app: App, option: str, value: object
) -> None:
    with pytest.raises(ConfigError, match=f"task work: {option}"):
        app.message("work", **{option: value})  # type: ignore[arg-type]


def test_expiring_at_once_is_refused(app: App) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        app.message("work", expires=0)


def test_milliseconds_are_refused_with_a_hint(app: App) -> None:
    with pytest.raises(ConfigError, match="not milliseconds"):
        app.message("work", eta=1_900_000_000_000)


def test_a_span_as_eta_is_refused_with_a_hint(app: App) -> None:
    with pytest.raises(ConfigError, match="countdown"):
        app.message("work", eta=timedelta(minutes=1))  # type: ignore[arg-type]
