"""Exceptions: Celery's names, trees and texts."""

from __future__ import annotations

import json
import pickle
from datetime import datetime
from typing import Any

import pytest

from taskmq.codec import encode_failure
from taskmq.compat import Celery
from taskmq.compat import exceptions as e
from taskmq.compat.failures import rebuilt
from taskmq.errors import ConfigError, RemoteError
from taskmq.message import ResultRecord
from taskmq.states import State
from tests.compat.conftest import MakeWorker


def test_every_exported_name_is_there_and_an_exception_or_warning() -> None:
    for name in e.__all__:
        assert issubclass(getattr(e, name), BaseException)


@pytest.mark.parametrize(
    ("name", "parent"),
    [
        ("Retry", "TaskPredicate"),
        ("Ignore", "TaskPredicate"),
        ("Reject", "TaskPredicate"),
        ("TaskPredicate", "CeleryError"),
        ("TaskError", "CeleryError"),
        ("MaxRetriesExceededError", "TaskError"),
        ("TimeoutError", "TaskError"),
        ("TaskRevokedError", "TaskError"),
        ("ChordError", "TaskError"),
        ("ImproperlyConfigured", "CeleryError"),
        ("AlwaysEagerIgnored", "CeleryWarning"),
        ("BackendGetMetaError", "BackendError"),
    ],
)
def test_parent(name: str, parent: str) -> None:
    assert issubclass(getattr(e, name), getattr(e, parent))


def test_configuration_errors_are_the_engines_too() -> None:
    assert issubclass(e.ImproperlyConfigured, ConfigError)
    assert issubclass(e.NotRegistered, KeyError)
    assert issubclass(e.WorkerShutdown, SystemExit)


@pytest.mark.parametrize(
    ("retry", "text"),
    [
        (e.Retry("Task can be retried"), "Task can be retried"),
        (e.Retry(exc=ValueError("x"), when=3), "Retry in 3.0s: ValueError('x')"),
        (e.Retry(when=2), "Retry in 2.0s"),
        (e.Retry(when=datetime(2026, 1, 1)), "Retry at 2026-01-01 00:00:00"),
        (e.Retry(exc="text", when=1), "Retry in 1.0s: text"),
    ],
)
def test_retry_says_when_and_why(retry: e.Retry, text: str) -> None:
    assert str(retry) == text
    back = pickle.loads(pickle.dumps(retry))
    assert (str(back), back.when) == (text.replace(": text", ""), retry.when)


def test_cause_whose_repr_raises_does_not_hide_the_retry() -> None:
    class Bad(Exception):
        def __repr__(self) -> str:
            raise RuntimeError

    assert "unprintable Bad" in str(e.Retry(exc=Bad(), when=0))


def test_reject_and_max_retries_carry_what_they_were_given() -> None:
    reject: Any = e.Reject("why", requeue=True)
    worn: Any = e.MaxRetriesExceededError("text", task_args=[1], task_kwargs={"k": 2})

    assert (reject.reason, reject.requeue) == ("why", True)
    assert (str(worn), worn.task_args, worn.task_kwargs) == ("text", [1], {"k": 2})


# -- stored failures ------------------------------------------------------------------------------


def test_failure_is_written_under_the_name_celery_has_it_by() -> None:
    def module(exc: BaseException) -> str:
        return str(json.loads(encode_failure(exc))["exc_module"])

    assert module(e.MaxRetriesExceededError("no")) == "celery.exceptions"
    assert module(e.Reject("no")) == "celery.exceptions"
    assert module(e.SoftTimeLimitExceeded()) == "billiard.exceptions"
    pytest.importorskip("billiard")
    assert module(e.caught_as_billiard(e.WorkerLostError)("gone")) == "billiard.exceptions"


def test_class_that_inherits_from_celerys_is_written_under_its_own_module() -> None:
    class Mine(e.TaskError):
        pass

    assert json.loads(encode_failure(Mine("x")))["exc_module"] == __name__


@pytest.mark.parametrize("module", ["celery.exceptions", "taskmq.compat.exceptions"])
def test_failure_under_either_name_is_read_back_as_the_same_class(app: Celery, module: str) -> None:
    found = rebuilt(app, failed(module, "MaxRetriesExceededError", "no more"))

    assert type(found) is e.MaxRetriesExceededError
    assert str(found) == "no more"


@pytest.mark.parametrize("module", ["billiard.exceptions", "taskmq.compat.exceptions"])
def test_failure_that_billiard_has_is_caught_under_its_name_too(app: Celery, module: str) -> None:
    billiard = pytest.importorskip("billiard.exceptions")

    found = rebuilt(app, failed(module, "SoftTimeLimitExceeded"))

    assert isinstance(found, e.SoftTimeLimitExceeded)
    assert isinstance(found, billiard.SoftTimeLimitExceeded)


@pytest.mark.parametrize("name", ["json.loads", "Signal", "OperationalError", "__builtins__"])
def test_name_of_celerys_that_is_no_exception_of_ours_is_not_looked_up(
    app: Celery, name: str
) -> None:
    found = rebuilt(app, failed("celery.exceptions", name, "x"))

    assert isinstance(found, RemoteError)


def test_task_that_fails_with_one_of_celerys_is_read_back(
    app: Celery, make_worker: MakeWorker
) -> None:
    @app.task
    def job() -> None:
        raise e.InvalidTaskError("bad", 4)

    result = job.delay()
    make_worker(app).run_until_idle()

    record = app.engine.results.get(result.id)
    assert record is not None
    assert b'"celery.exceptions"' in (record.body or b"")
    with pytest.raises(e.InvalidTaskError) as caught:
        result.get()
    assert caught.value.args == ("bad", 4)


def failed(module: str, name: str, *args: Any) -> ResultRecord:
    body = {"exc_type": name, "exc_module": module, "exc_message": list(args)}
    return ResultRecord(task_id="t", state=State.FAILED, body=json.dumps(body).encode())
