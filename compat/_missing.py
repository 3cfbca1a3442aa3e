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

_BEAT = "let cron run `taskmq call` meanwhile"
_BROKER = "there is no broker connection; the kombu adapter will bring it"
_WORKER = "the worker is TaskMQ's own; hooks are in celery.signals"
_PARTS = "submit the parts in a loop, or as a group"
_EVENTS = "`taskmq events` streams what happens as lines of JSON"
_LOGGING = "configure logging in the project; `taskmq worker` leaves existing handlers alone"
_TESTING = "tests can use taskmq.testing, or task_always_eager"

_ATTRIBUTES = {
    "app": {
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
        "events": _EVENTS,
        "log": _LOGGING,
        "steps": _WORKER,
        "user_options": "read what a worker is to know from the environment or the settings",
        "Worker": "start it with `taskmq worker`, or app.worker_main([...])",
        "WorkController": "start it with `taskmq worker`, or app.worker_main([...])",
        "setup_security": "messages are not signed",
        "select_queues": "name the queues with `taskmq worker -Q`",
        "bugreport": "`taskmq doctor` prints what a report needs",
        "clock": "there is no logical clock",
    },
    "task": {
        "replace": "submit the other task and return, or make both a chain",
        "add_to_chord": "name all members of a chord when it is submitted",
        "chunks": _PARTS,
        "map": _PARTS,
        "starmap": _PARTS,
        "send_event": "use update_state",
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
    "beat": _BEAT,
    "apps": _WORKER,
    "backends": "results are kept beside the messages",
    "bin": "the command line is `taskmq`",
    "bootsteps": _WORKER,
    "concurrency": "pools are chosen with `taskmq worker -P prefork|threads|solo|asyncio`",
    "contrib.abortable": "revoke the task, and let it ask "
    "taskmq.current_context().check_cancelled() whether to stop",
    "contrib.django": "use celery.Task, and django.db.transaction.on_commit for calls after a commit",
    "contrib.migrate": "`taskmq dlq` and `taskmq purge` act on what is stored",
    "contrib.pytest": _TESTING,
    "contrib.rdb": "run the worker with `-P solo` and use breakpoint(), or call the task in pdb",
    "contrib.sphinx": "tasks are documented as the functions they wrap, task.__wrapped__",
    "contrib.testing": _TESTING,
    "events": _EVENTS,
    "fixups": "connect to celery.signals, task_prerun and task_postrun among them",
    "loaders": "settings come from app.config_from_object, tasks from include and autodiscover_tasks",
    "platforms": "processes belong to systemd, supervisor or a container",
    "security": "messages are not signed",
    "worker": _WORKER,
    "app.amqp": "app.amqp.queues and app.amqp.router work",
    "app.annotations": "the setting task_annotations works",
    "app.builtins": "chains, groups and chords are the engine's own",
    "app.events": _EVENTS,
    "app.log": _LOGGING,
    "app.utils": "the settings are app.conf",
    "utils.debug": "use tracemalloc",
    "utils.saferepr": "use reprlib",
    "utils.serialization": "bodies are JSON unless task_serializer says otherwise",
    "utils.text": "use textwrap",
    "utils.timer2": "use threading.Timer",
}
#: Modules that Celery itself no longer has.
_GONE = {
    "task": "Celery 5 removed it; use celery.Task, @app.task and app.control",
    "five": "Celery 5 removed it; it bridged Python 2 and 3",
}

#: Names that a package of Celery's exports and ours does not yet, besides its modules.
_NAMES: dict[str, dict[str, str]] = {
    "": {
        "xmap": _PARTS,
        "xstarmap": _PARTS,
        "chunks": _PARTS,
        "bugreport": "`taskmq doctor` prints what a report needs",
        "maybe_patch_concurrency": "use `taskmq worker -P threads` or asyncio",
    },
    "canvas": {
        "xmap": _PARTS,
        "xstarmap": _PARTS,
        "chunks": _PARTS,
        "StampingVisitor": "put what it would stamp into headers=",
        "abstract_chain": "isinstance(value, Signature) tells a signature",
    },
    "app": {},
    "contrib": {},
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
        known = ".".join(parts[:length])
        if known in _GONE:
            return ModuleNotFoundError(f"{shown} is gone: {_GONE[known]}", name=shown)
        if known in _MODULES:
            return ModuleNotFoundError(f"{shown} is not there yet: {_MODULES[known]}", name=shown)
    return None


def missing_names(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of one of our packages ("" is `taskmq.compat` itself).

    Raises ImportError and not AttributeError for a part of Celery's: `from celery import beat` would
    replace the latter's text by "cannot import name".
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        inside = f"{package}.{name}".lstrip(".")
        shown = f"{_name_in_use()}.{inside}"
        if name in _NAMES[package]:
            raise ImportError(f"{shown} is not there yet: {_NAMES[package][name]}", name=shown)
        error = missing_module(inside, shown)
        if error is not None:
            raise error
        full = f"{_PACKAGE}.{package}".rstrip(".")
        raise AttributeError(f"module {full!r} has no attribute {name!r}")

    return __getattr__


def _name_in_use() -> str:
    """What the project calls this package: `celery` once the alias is installed."""
    from taskmq.compat.alias import is_installed

    return "celery" if is_installed() else _PACKAGE


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
