"""Periodic tasks are kept, counted and told of; nothing submits them yet."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from taskmq.compat import Celery
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.compat.schedules import crontab
from tests.compat.conftest import MakeApp


@pytest.fixture
def add(app: Celery) -> Any:
    """A task."""
    return app.task(name="add")(lambda x=0, y=0: x + y)


def said(app: Celery) -> list[str]:
    return [line for adviser in app.engine.hooks.advisers for line in adviser()]


def test_project_with_a_schedule_starts_and_is_told_how_much_will_not_run(
    make_app: MakeApp,
) -> None:
    source = SimpleNamespace(
        CELERYBEAT_SCHEDULE={
            name: {"task": "add", "schedule": crontab(minute=0)} for name in "abcde"
        }
    )
    app = make_app()
    app.config_from_object(source)
    app.task(name="add")(lambda: None)

    assert list(app.conf.beat_schedule) == list("abcde")
    assert said(app) == [
        "5 periodic tasks will not run (a, b, c, …): the process that submits them (beat) is not there yet; "
        "let cron run `taskmq call` meanwhile"
    ]


def test_project_without_one_is_told_nothing(app: Celery) -> None:
    assert said(app) == []


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"task": "gone", "schedule": 5}, "no task 'gone' is registered"),
        (
            {"task": "add", "schedule": "5"},
            "a schedule is seconds, a timedelta or a crontab, got '5'",
        ),
        ({"task": "add"}, "a schedule is seconds, a timedelta or a crontab, got None"),
        ({"schedule": 5}, "a dict with 'task', the name of a task, and 'schedule', got"),
        ("add", "a dict with 'task'"),
    ],
)
def test_entry_that_could_never_run_is_pointed_out(
    app: Celery, add: Any, entry: Any, told: str
) -> None:
    app.conf.beat_schedule = {"e": entry, "ok": {"task": "add", "schedule": 3}}

    lines = said(app)

    assert len(lines) == 2
    assert lines[1].startswith(f"beat_schedule['e']: {told}")


def test_schedule_that_is_no_dict_is_pointed_out(app: Celery, add: Any) -> None:
    app.conf.beat_schedule = [{"task": "add"}]

    assert said(app) == ["beat_schedule: a dict of name to entry, got [{'task': 'add'}]"]
    with pytest.raises(ImproperlyConfigured, match="beat_schedule: a dict"):
        app.add_periodic_task(1, add.s())


def test_added_entries_stand_in_the_schedule(app: Celery, add: Any) -> None:
    @app.on_after_configure.connect
    def setup(sender: Celery, **kwargs: Any) -> None:
        sender.add_periodic_task(10.0, add.s(1, y=2), name="ten", expires=5)
        sender.add_periodic_task(crontab(0), add.s().set(queue="q"), args=(4,))
        sender.add_periodic_task(30, add, kwargs={"x": 3})

    schedule = app.conf.beat_schedule

    assert schedule["ten"] == {
        "schedule": 10.0,
        "task": "add",
        "args": (1,),
        "kwargs": {"y": 2},
        "options": {"expires": 5},
    }
    assert schedule["add(4)"]["options"] == {"queue": "q"}
    assert schedule["add(x=3)"]["kwargs"] == {"x": 3}
    assert said(app)[0].startswith("3 periodic tasks will not run (ten, add(4), add(x=3))")


def test_entry_added_before_the_settings_are_read_joins_those_of_the_project() -> None:
    app = Celery(set_as_current=False)
    key = app.add_periodic_task(5, app.signature("add"), name="mine")
    configured_then = app.configured
    app.config_from_object({"beat_schedule": {"theirs": {"task": "add", "schedule": 9}}})

    assert not configured_then
    assert key == "mine"
    assert sorted(app.conf.beat_schedule) == ["mine", "theirs"]


def test_apps_do_not_share_their_entries(make_app: MakeApp) -> None:
    one, two = make_app(), make_app()
    one.conf.get("timezone")
    one.add_periodic_task(5, one.task(name="t")(lambda: None).s(), name="x")

    assert "x" in one.conf.beat_schedule
    assert two.conf.beat_schedule == {}


def test_second_unnamed_entry_of_one_call_is_warned_of(
    app: Celery, add: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app.conf.get("timezone")
    with caplog.at_level(logging.WARNING):
        app.add_periodic_task(5, add.s(1))
        app.add_periodic_task(6, add.s(1))
        app.add_periodic_task(7, add.s(1), name="named")
        app.add_periodic_task(8, add.s(1), name="named")

    warned = [r.message for r in caplog.records]
    assert warned == ["periodic task 'add(1)' takes the place of another one; give it name="]
    assert app.conf.beat_schedule["add(1)"]["schedule"] == 6


@pytest.mark.parametrize(("schedule", "sig"), [("5", "add"), (5, "add"), (5, None)])
def test_what_is_no_schedule_or_no_call_is_refused_where_it_is_written(
    app: Celery, add: Any, schedule: Any, sig: Any
) -> None:
    with pytest.raises(ImproperlyConfigured):
        app.add_periodic_task(schedule, sig)


def test_workflow_may_be_periodic(app: Celery, add: Any) -> None:
    app.conf.get("timezone")
    app.add_periodic_task(5, add.s(1) | add.s(2), name="both")

    assert app.conf.beat_schedule["both"]["task"] == "celery.chain"
    assert len(said(app)) == 1
