"""Exceptions: Celery's names, trees and texts."""

from __future__ import annotations

import pickle
from datetime import datetime
from typing import Any

import pytest

from taskmq.compat import exceptions as e
from taskmq.errors import ConfigError


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
