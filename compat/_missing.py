"""The parts of Celery that are not here yet: each says what to use meanwhile.

A name that is missing must not look like a typing error. Attributes raise `NotThereYet` (an
`AttributeError`, so `hasattr` is False), modules `ModuleNotFoundError`, both with the alternative.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = (
    "NotThereYet",
    "missing_attribute",
    "missing_module",
    "missing_names",
    "explain_missing_modules",
)

_BEAT = "the periodic process is not there yet; let cron run `taskmq call` meanwhile"
_BROKER = "there is no broker connection; it arrives with the kombu adapter"
_WORKER = "the worker is TaskMQ's own; hooks are in celery.signals"

_ATTRIBUTES = {
    "app": {
        "add_periodic_task": _BEAT,
        "Beat": _BEAT,
        "connection": _BROKER,
        "connection_for_read": _BROKER,
        "connection_for_write": _BROKER,
        "connection_or_acquire": _BROKER,
        "broker_connection": _BROKER,
        "default_connection": _BROKER,
        "pool": _BROKER,
        "producer_pool": _BROKER,
        "producer_or_acquire": _BROKER,
        "default_producer": _BROKER,
        "events": "`taskmq events` streams what happens as lines of JSON",
        "log": "configure logging in the project; `taskmq worker` leaves existing handlers alone",
        "steps": _WORKER,
        "user_options": "options of one's own on the command line are not there yet",
        "Worker": "start it with `taskmq worker`, or app.worker_main([...])",
        "WorkController": "start it with `taskmq worker`, or app.worker_main([...])",
        "setup_security": "signed messages are not there yet",
        "select_queues": "name the queues with `taskmq worker -Q`",
        "bugreport": "`taskmq doctor` prints what a report needs",
        "clock": "there is no logical clock",
    },
    "task": {
        "replace": "submit the other task and return; a task that replaces itself is not there yet",
        "add_to_chord": "a chord that grows is not there yet",
        "chunks": "submit the parts in a loop, or as a group",
        "map": "submit the parts in a loop, or as a group",
        "starmap": "submit the parts in a loop, or as a group",
        "send_event": "use update_state; events of one's own are not there yet",
        "start_strategy": _WORKER,
        "signature_from_request": "use self.retry()",
        "subtask_from_request": "use self.retry()",
        "delay_on_commit": "use django.db.transaction.on_commit(lambda: task.delay(...))",
        "apply_async_on_commit": "use django.db.transaction.on_commit(lambda: task.apply_async(...))",
    },
    "backend": {
        "client": "results are in TaskMQ's own store; read them with AsyncResult",
        "ResultSession": "results are in TaskMQ's own store; read them with AsyncResult",
    },
}

_MODULES = {
    "schedules": _BEAT,
    "beat": _BEAT,
    "apps": _WORKER,
    "backends": "results are kept beside the messages; backends of one's own are not there yet",
    "bin": "the command line is `taskmq`; commands of one's own are not there yet",
    "bootsteps": _WORKER,
    "concurrency": "pools are chosen with `taskmq worker -P prefork|threads|solo|asyncio`",
    "contrib": "tests can use taskmq.testing, or task_always_eager",
    "events": "`taskmq events` streams what happens as lines of JSON",
    "fixups": "fixups are not there yet",
    "loaders": "loaders of one's own are not there yet",
    "platforms": "processes belong to systemd, supervisor or a container",
    "security": "signed messages are not there yet",
    "task": "it was removed from Celery itself; use celery.Task and app.control",
    "worker": _WORKER,
    "app.amqp": "app.amqp.queues and app.amqp.router are there; the classes are not yet",
    "app.annotations": "the setting task_annotations works",
    "app.builtins": "chains, groups and chords are the engine's own",
    "app.events": "`taskmq events` streams what happens as lines of JSON",
    "app.log": "configure logging in the project",
    "app.utils": "the settings are app.conf",
    "utils.debug": "use tracemalloc",
    "utils.saferepr": "use reprlib",
    "utils.serialization": "bodies are JSON unless task_serializer says otherwise",
    "utils.text": "not there yet",
    "utils.timer2": "not there yet",
}

#: Names that a package of Celery's exports and ours does not yet, besides its modules.
_NAMES = {
    "": {
        "xmap": "submit the parts in a loop, or as a group",
        "xstarmap": "submit the parts in a loop, or as a group",
        "chunks": "submit the parts in a loop, or as a group",
        "bugreport": "`taskmq doctor` prints what a report needs",
        "maybe_patch_concurrency": "there is no eventlet or gevent pool yet",
    },
    "canvas": {
        "xmap": "submit the parts in a loop, or as a group",
        "xstarmap": "submit the parts in a loop, or as a group",
        "chunks": "submit the parts in a loop, or as a group",
        "StampingVisitor": "stamps are not there yet",
        "abstract_chain": "isinstance(value, Signature) tells a signature",
    },
    "app": {},
    "utils": {},
}

_PACKAGE = "taskmq.compat"


class NotThereYet(AttributeError, NotImplementedError):
    """A part of Celery that TaskMQ does not have yet."""


def missing_attribute(kind: str, name: str, owner: Any) -> AttributeError:
    """The error for an attribute of an app, a task or a backend that does not exist."""
    instead = _ATTRIBUTES[kind].get(name)
    if instead is not None:
        return NotThereYet(f"{kind}.{name} is not there yet: {instead}")
    return AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}")


def missing_module(name: str, shown: str) -> ModuleNotFoundError | None:
    """The error for a module of Celery's that does not exist here; None when Celery has none either."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        instead = _MODULES.get(".".join(parts[:length]))
        if instead is not None:
            return ModuleNotFoundError(f"{shown} is not there yet: {instead}", name=shown)
    return None


def missing_names(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of one of our packages ("" is `taskmq.compat` itself).

    Raises ImportError and not AttributeError for a part of Celery's: `from celery import beat` would
    replace the latter's text by "cannot import name".
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        full = f"{_PACKAGE}.{package}".rstrip(".")
        inside = f"{package}.{name}".lstrip(".")
        instead = _NAMES[package].get(name) or _MODULES.get(inside)
        if instead is not None:
            raise ImportError(f"{full}.{name} is not there yet: {instead}", name=full)
        raise AttributeError(f"module {full!r} has no attribute {name!r}")

    return __getattr__


class _Explainer(MetaPathFinder):
    """The last finder: reached only for a module of ours that nobody else found."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname.startswith(_PACKAGE + "."):
            error = missing_module(fullname[len(_PACKAGE) + 1 :], fullname)
            if error is not None:
                raise error
        return None


def explain_missing_modules() -> None:
    """Have an import of a part that is not there yet say so. Once per process."""
    if not any(type(finder).__name__ == "_Explainer" for finder in sys.meta_path):
        sys.meta_path.append(_Explainer())
