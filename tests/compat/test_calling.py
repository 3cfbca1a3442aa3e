"""Calls: options, times, arguments, and what is raised where."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from typing import Any
from unittest import mock

import kombu.exceptions
import pytest

from taskmq.compat import Celery
from taskmq.compat.exceptions import (
    ImproperlyConfigured,
    NotRegistered,
    OperationalError,
    TaskRevokedError,
)
from taskmq.errors import ConfigError, SubmitUnknown, TransportUnavailable
from tests.compat.conftest import MakeApp, MakeWorker


@pytest.fixture
def add(app: Celery) -> Any:
    @app.task(name="add")
    def add(x: Any, y: Any = 0) -> Any:
        return x + y

    return add


def test_delay_and_apply_async_give_the_arguments_to_the_task(
    app: Celery, add: Any, make_worker: MakeWorker
) -> None:
    worker = make_worker(app)
    results = [
        add.delay(1, 2),
        add.delay(1, y=3),
        add.apply_async((1, 4)),
        add.apply_async(args=[1], kwargs={"y": 5}),
    ]
    worker.run_until_idle()

    assert [r.get() for r in results] == [3, 4, 5, 6]


def test_arguments_the_task_does_not_take_are_refused_at_the_call(app: Celery, add: Any) -> None:
    with pytest.raises(TypeError, match="add"):
        add.delay()
    with pytest.raises(TypeError, match="z"):
        add.delay(1, z=2)


def test_wrong_call_fails_where_it_runs_when_typing_is_off(
    app: Celery, make_worker: MakeWorker
) -> None:
    @app.task(typing=False)
    def one(x: int) -> int:
        return x

    result = one.delay(1, 2, 3)
    make_worker(app).run_until_idle()

    assert isinstance(result.get(propagate=False), TypeError)


@pytest.mark.parametrize("args", ["text", 3, {"x": 1}])
def test_arguments_that_are_no_list_are_refused(add: Any, args: Any) -> None:
    with pytest.raises(TypeError, match="list or tuple"):
        add.apply_async(args)


def test_arguments_that_cannot_be_sent_raise_kombus_error(add: Any) -> None:
    with pytest.raises(kombu.exceptions.EncodeError, match=r"args\[0\]"):
        add.delay({1, 2})


@pytest.mark.parametrize("error", [TransportUnavailable("locked"), SubmitUnknown("cut off")])
def test_call_that_was_not_stored_raises_kombus_operational_error(
    app: Celery, add: Any, error: Exception
) -> None:
    with (
        mock.patch.object(app.engine.transport, "submit", side_effect=error),
        pytest.raises(kombu.exceptions.OperationalError, match=str(error)) as caught,
    ):
        add.delay(1)
    assert caught.value.__cause__ is error
    assert OperationalError is kombu.exceptions.OperationalError


# -- times ----------------------------------------------------------------------------------------


def ran_at(app: Celery, worker: Any, result: Any) -> float:
    """Seconds from now until the task had run."""
    start = worker.clock.now()
    for _ in range(200):
        worker.advance(0.5)
        if result.ready():
            return float(worker.clock.now() - start)
    raise AssertionError("it never ran")


@pytest.mark.parametrize("countdown", [10, 10.0, timedelta(seconds=10)])
def test_countdown_is_waited_for(
    app: Celery, add: Any, make_worker: MakeWorker, countdown: Any
) -> None:
    worker = make_worker(app)

    assert ran_at(app, worker, add.apply_async((1,), countdown=countdown)) == pytest.approx(
        10, abs=1
    )


def test_countdown_that_is_over_runs_at_once(
    app: Celery, add: Any, make_worker: MakeWorker
) -> None:
    result = add.apply_async((1,), countdown=-5)
    make_worker(app).run_until_idle()

    assert result.get() == 1


def test_eta_is_a_datetime_or_text_and_naive_means_the_apps_zone(
    make_app: MakeApp, make_worker: MakeWorker
) -> None:
    app = make_app(timezone="Asia/Tokyo")
    add = app.task(name="add")(lambda x: x)
    worker = make_worker(app)
    now = datetime.fromtimestamp(worker.clock.now(), timezone.utc)
    in_tokyo = (now + timedelta(hours=9, seconds=20)).replace(tzinfo=None)
    etas = [
        now + timedelta(seconds=20),
        (now + timedelta(seconds=20)).isoformat(),
        in_tokyo,
        in_tokyo.isoformat(),
    ]

    results = [add.apply_async((1,), eta=eta) for eta in etas]
    worker.advance(18)
    early = [r.ready() for r in results]
    worker.advance(4)

    assert early == [False] * 4
    assert [r.ready() for r in results] == [True] * 4


@pytest.mark.parametrize("value", ["soon", 3.5, object()])
def test_eta_that_is_no_time_is_refused(add: Any, value: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="eta"):
        add.apply_async((1,), eta=value)


def test_countdown_that_is_no_number_is_refused(add: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="countdown"):
        add.apply_async((1,), countdown="5")


@pytest.mark.parametrize("kind", ["seconds", "timedelta", "datetime", "text"])
def test_task_that_expired_is_revoked_and_never_runs(
    app: Celery, add: Any, make_worker: MakeWorker, kind: str
) -> None:
    worker = make_worker(app)
    moment = datetime.fromtimestamp(worker.clock.now() + 5, timezone.utc)
    value: Any = {
        "seconds": 5,
        "timedelta": timedelta(seconds=5),
        "datetime": moment,
        "text": moment.isoformat(),
    }[kind]

    late = add.apply_async((1,), countdown=10, expires=value)
    in_time = add.apply_async((1,), countdown=3, expires=value)
    worker.advance(20)

    assert late.state == "REVOKED"
    assert isinstance(late.get(propagate=False), TaskRevokedError)
    assert in_time.get() == 1


@pytest.mark.parametrize("value", [0, -5])
def test_expiry_that_is_over_is_legal_and_expires_at_once(
    app: Celery, add: Any, make_worker: MakeWorker, value: int
) -> None:
    result = add.apply_async((1,), expires=value)
    make_worker(app).advance(1)

    assert result.state == "REVOKED"


# -- other options --------------------------------------------------------------------------------


def test_queue_of_the_call_is_where_it_goes(app: Celery, add: Any) -> None:
    add.apply_async((1,), queue="other")
    add.delay(1)

    queues = {info.name for info in app.engine.transport.operators.queues()}
    assert queues == {"other", "celery"}


def test_task_id_may_be_any_text(app: Celery, add: Any, make_worker: MakeWorker) -> None:
    result = add.apply_async((1,), task_id="invoice 7")
    make_worker(app).run_until_idle()

    assert (result.id, app.AsyncResult("invoice 7").get()) == ("invoice 7", 1)


def test_headers_are_attributes_of_the_request(app: Celery, make_worker: MakeWorker) -> None:
    @app.task(bind=True)
    def job(self: Any) -> Any:
        return self.request.trace, self.request.headers, self.request.get("nothing", "default")

    result = job.apply_async(headers={"trace": "t-1"})
    without = job.apply_async
    make_worker(app).run_until_idle()

    assert result.get() == ["t-1", {"trace": "t-1"}, "default"]
    assert without is not None


def test_call_that_keeps_no_result_gives_none_at_once(
    app: Celery, add: Any, make_worker: MakeWorker
) -> None:
    result = add.apply_async((1,), ignore_result=True)

    assert result.ignored
    assert result.get(timeout=0) is None
    make_worker(app).run_until_idle()
    assert result.state == "PENDING"


def test_ignore_result_of_the_call_beats_the_tasks(app: Celery, make_worker: MakeWorker) -> None:
    task = app.task(ignore_result=True)(lambda: 5)
    ignored, kept = task.delay(), task.apply_async(ignore_result=False)
    make_worker(app).run_until_idle()

    assert (ignored.get(), kept.get()) == (None, 5)


def test_unknown_option_is_refused_with_the_likely_one(add: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="Did you mean 'countdown'"):
        add.apply_async((1,), cuontdown=5)
    with pytest.raises(ConfigError, match="MessageGroupId"):
        add.apply_async((1,), MessageGroupId="g")


def test_option_without_meaning_here_is_said_once(
    app: Celery, add: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "taskmq.compat"):
        add.apply_async((1,), compression="gzip")
        add.apply_async((1,), compression="gzip")
        add.apply_async((1,), connection=object(), retry=False, producer=object())

    assert [r.message for r in caplog.records if "compression" in r.message] == [
        "option 'compression' has no effect here: there is no broker connection (task add)"
    ]


def test_soft_limit_above_the_hard_one_is_refused(add: Any) -> None:
    with pytest.raises(ValueError, match="soft_time_limit"):
        add.apply_async((1,), time_limit=5, soft_time_limit=10)


def test_send_task_reaches_a_task_that_only_the_worker_knows(
    app: Celery, make_worker: MakeWorker
) -> None:
    result = app.send_task("later.registered", args=[2], kwargs={"y": 3})

    app.task(name="later.registered")(lambda x, y: x * y)
    make_worker(app).run_until_idle()

    assert result.get() == 6


def test_task_that_nobody_knows_is_not_thrown_away_but_fails_as_not_registered(
    app: Celery, make_worker: MakeWorker
) -> None:
    result = app.send_task("nobody.knows.this")
    make_worker(app).advance(3600)

    assert result.state == "FAILURE"
    assert isinstance(result.get(propagate=False), NotRegistered)
    letters = app.engine.transport.operators.dead_letters()
    assert [letter.message.task_id for letter in letters] == [result.id]


def test_send_task_of_a_known_task_uses_its_options(app: Celery) -> None:
    app.task(name="mine", queue="special")(lambda: None)

    app.send_task("mine")

    assert {q.name for q in app.engine.transport.operators.queues()} == {"special"}


def test_callbacks_run_after_success_and_error_callbacks_after_failure(
    app: Celery, add: Any, make_worker: MakeWorker
) -> None:
    noted: list[Any] = []
    note = app.task(name="note")(noted.append)
    boom = app.task(name="boom")(lambda: 1 / 0)
    worker = make_worker(app)

    add.apply_async((1, 2), link=note.s(), link_error=note.si("not this"))
    failed = boom.apply_async(link=note.si("nor this"), link_error=[note.s()])
    worker.run_until_idle()

    assert sorted(noted, key=str) == sorted([3, failed.id], key=str)


def test_child_knows_its_parent_and_root(app: Celery, make_worker: MakeWorker) -> None:
    children: list[Any] = []

    @app.task(bind=True, name="child")
    def child(self: Any, deeper: bool) -> Any:
        if deeper:
            children.append(child.delay(False))
        return [self.request.parent_id, self.request.root_id]

    top = child.delay(True)
    make_worker(app).run_until_idle()

    assert top.get() == [None, top.id]
    assert children[0].get() == [top.id, top.id]
    assert [r.id for r in top.children] == [children[0].id]


def test_concurrency_key_of_the_engine_is_an_option_here_too(
    app: Celery, make_worker: MakeWorker
) -> None:
    @app.task(concurrency_key="account:{account}", concurrency_limit=1)
    def job(account: int) -> int:
        return account

    message = app.engine.message(job.adapter, (7,), concurrency_key=job.concurrency_key)
    result = job.delay(7)
    make_worker(app).run_until_idle()

    assert message.concurrency is not None
    assert message.concurrency.key == "account:7"
    assert result.get() == 7


def test_call_that_says_nothing_carries_what_the_task_says(app: Celery) -> None:
    task = app.task(name="job", time_limit=9, soft_time_limit=5, queue="slow")(lambda: None)

    def message(**options: Any) -> Any:
        return app.engine.transport.operators.find(task.apply_async(**options).id)[0].message

    plain, own = message(), message(time_limit=7, queue="fast", task_id="mine")

    assert (plain.queue, plain.time_limit, plain.soft_time_limit) == ("slow", 9, 5)
    assert (own.queue, own.time_limit, own.soft_time_limit) == ("fast", 7, 5)
    # One id for both where the caller brings none: the store keeps it once.
    assert plain.message_id == plain.task_id
    assert own.message_id != own.task_id == "mine"
