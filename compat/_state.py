"""Which app and which task are current: the only state of the shim that belongs to the process.

Celery needs it (`current_app`, `shared_task`), so it lives here behind a few functions and nowhere
else. Unlike Celery's, a thread that made no app of its own sees the app that the process made last,
not a nameless one without configuration.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskmq.compat.local import Proxy
from taskmq.compat.utils.threads import LocalStack

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery
    from taskmq.compat.app.task import Task

__all__ = (
    "set_default_app",
    "get_current_app",
    "get_current_task",
    "get_current_worker_task",
    "app_or_default",
    "connect_on_app_finalize",
    "current_app",
    "current_task",
    "task_join_will_block",
)


class _Process:
    """Everything that is global: one instance per process."""

    def __init__(self) -> None:
        self.local = threading.local()
        self.last: Celery | None = None
        self.default: Celery | None = None
        self.lock = threading.RLock()
        self.shared: list[Callable[[Celery], Any]] = []


_process = _Process()
#: Every app that is alive; shared tasks are bound to the completed ones.
_apps: weakref.WeakSet[Celery] = weakref.WeakSet()
#: The tasks being run, innermost last, per thread and coroutine.
_task_stack = LocalStack("taskmq.compat.tasks")
#: Set while a pool runs a task: waiting for another result there can stop every worker.
_joins = LocalStack("taskmq.compat.joins")


def _register_app(app: Celery) -> None:
    with _process.lock:
        _apps.add(app)


def _deregister_app(app: Celery) -> None:
    with _process.lock:
        _apps.discard(app)


def _get_active_apps() -> list[Celery]:
    with _process.lock:
        return list(_apps)


def _set_current_app(app: Celery) -> None:
    _process.local.app = app
    _process.last = app


def set_default_app(app: Celery) -> None:
    """Make `app` the one that every thread without a current app gets."""
    _process.default = app


def get_current_app() -> Celery:
    """This thread's current app: the one it made last, else the default, else the process's last one.

    A process that has no app gets one without configuration, named "default", as in Celery.
    """
    found = getattr(_process.local, "app", None) or _process.default or _process.last
    if found is None:
        with _process.lock:
            if _process.default is None:
                from taskmq.compat.app.base import Celery

                _process.default = Celery("default", set_as_current=False)
            found = _process.default
    return found


def app_or_default(app: Celery | None = None) -> Celery:
    """`app`, or the current app."""
    return get_current_app() if app is None else app


def get_current_task() -> Task | None:
    """The innermost task being run here, also when it was called directly, or None."""
    found: Task | None = _task_stack.top
    return found


def get_current_worker_task() -> Task | None:
    """The outermost task being run here by a worker (not one called directly inside it), or None."""
    for task in reversed(_task_stack.stack):
        if not task.request.called_directly:
            found: Task = task
            return found
    return None


def connect_on_app_finalize(callback: Callable[[Celery], Any]) -> Callable[[Celery], Any]:
    """Have `callback(app)` called when any app is completed. Usable as a decorator."""
    with _process.lock:
        _process.shared.append(callback)
    return callback


def _announce_app_finalized(app: Celery) -> None:
    with _process.lock:
        callbacks = list(_process.shared)
    for callback in callbacks:
        callback(app)


def task_join_will_block() -> bool:
    """Whether waiting for a result here is refused, because a task is being run by a worker."""
    return bool(_joins.top)


def _set_task_join_will_block(blocks: bool) -> None:
    _joins.push(blocks)


#: The current app and the current task, looked up on every use.
current_app: Any = Proxy(get_current_app)
current_task: Any = Proxy(get_current_task)
