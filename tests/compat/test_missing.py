"""Parts of Celery that are not there yet say so, and say what to use."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from taskmq.compat import Celery
from taskmq.compat._missing import _ATTRIBUTES, _GONE, _MODULES, _NAMES, NotThereYet


@pytest.mark.parametrize("name", sorted(_ATTRIBUTES["app"]))
def test_attribute_of_an_app(app: Celery, name: str) -> None:
    with pytest.raises(NotThereYet, match=rf"app\.{name} is not there yet: \S+"):
        getattr(app, name)
    assert not hasattr(app, name)


@pytest.mark.parametrize("name", sorted(_ATTRIBUTES["task"]))
def test_attribute_of_a_task(app: Celery, name: str) -> None:
    task = app.task(lambda: None)

    with pytest.raises(NotThereYet, match=rf"task\.{name} is not there yet"):
        getattr(task, name)


def test_attribute_of_the_backend(app: Celery) -> None:
    with pytest.raises(NotThereYet, match="AsyncResult"):
        _ = app.backend.client


def test_name_that_celery_has_not_either_is_a_plain_error(app: Celery) -> None:
    task = app.task(lambda: None)
    for owner in (app, task, app.backend):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = owner.nonsense
    assert getattr(task, "nonsense", 3) == 3


@pytest.mark.parametrize("name", sorted(_MODULES))
def test_module(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"taskmq.compat.{name} is not there yet"):
        importlib.import_module(f"taskmq.compat.{name}")


@pytest.mark.parametrize("name", sorted(_GONE))
def test_module_that_celery_removed_is_gone_and_not_to_come(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"taskmq.compat.{name} is gone: Celery 5"):
        importlib.import_module(f"taskmq.compat.{name}.deeper")


def test_what_to_use_instead_says_more_than_that_something_is_not_there_yet() -> None:
    hints = [
        hint
        for table in (*_ATTRIBUTES.values(), *_NAMES.values(), _MODULES)
        for hint in table.values()
    ]

    assert [hint for hint in hints if "there yet" in hint] == []


def test_module_that_celery_has_not_either_is_a_plain_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'taskmq\.compat\.nonsense'"):
        importlib.import_module("taskmq.compat.nonsense")


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("from taskmq.compat import beat", "cron"),
        ("from taskmq.compat import bootsteps", "celery.signals"),
        ("from taskmq.compat.contrib import rdb", "breakpoint"),
        ("from taskmq.compat.contrib.abortable import AbortableTask", "check_cancelled"),
        ("from taskmq.compat import xmap", "as a group"),
        ("from taskmq.compat.canvas import chunks", "as a group"),
        ("from taskmq.compat.app import amqp", "app.amqp.queues"),
        ("from taskmq.compat.worker import state", "celery.signals"),
    ],
)
def test_import_of_a_name(statement: str, told: str) -> None:
    with pytest.raises(ImportError, match=f"is not there yet: .*{told}"):
        exec(statement)


def test_name_that_celery_does_not_export_is_a_plain_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec("from taskmq.compat import nonsense")
    assert not hasattr(importlib.import_module("taskmq.compat.utils"), "nonsense")


@pytest.mark.parametrize("name", ["amqp", "events", "log", "control", "loader", "tasks", "fixups"])
def test_class_of_ones_own(name: str) -> None:
    given: dict[str, Any] = {name: ["x"] if name == "fixups" else "x:Y"}

    with pytest.raises(Exception, match=f"Celery\\({name}=\\)"):
        Celery(set_as_current=False, **given)
