"""From a function and the decorator's options to a task of an app."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from taskmq.compat import _state
from taskmq.compat.app.retrying import with_autoretry
from taskmq.compat.app.scale import Scale
from taskmq.compat.app.task import Task
from taskmq.compat.exceptions import DuplicateTaskNameWarning, ImproperlyConfigured
from taskmq.compat.local import PromiseProxy, Proxy
from taskmq.compat.utils.imports import symbol_by_name

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("declare", "shared_task", "task_from_fun")

#: Options of Celery's decorator that cannot be kept as attributes without their meaning being lost.
_NOT_YET = {
    "pydantic": "validate inside the task, or call model_dump() and model_validate() yourself",
    "pydantic_strict": "see pydantic",
    "pydantic_context": "see pydantic",
    "pydantic_dump_kwargs": "see pydantic",
}


def declare(app: Celery, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """`@app.task`, bare or with options: the task, or a stand-in for it until the app is complete."""
    check_options(options)
    shared = options.pop("shared", True)
    lazy = options.pop("lazy", True)
    filter_ = options.pop("filter", None)

    def decorate(function: Callable[..., Any]) -> Any:
        if not callable(function):
            raise TypeError(f"@app.task: decorates a function, got {function!r}")
        if shared:
            # Any other app of this process knows the task too (the app of a test, say).
            _state.connect_on_app_finalize(lambda other: task_from_fun(other, function, options))

        def make() -> Any:
            task = task_from_fun(app, function, options)
            return filter_(task) if filter_ else task

        if not lazy or app.finalized:
            return make()
        promise = PromiseProxy(make, name=function.__name__, doc=function.__doc__)
        app._pending.append(promise)
        return promise

    return _with_or_without_options(args, decorate, "@app.task")


@overload
def shared_task(fn: Callable[..., Any], /) -> Any: ...


@overload
def shared_task(**options: Any) -> Callable[[Callable[..., Any]], Any]: ...


def shared_task(*args: Any, **options: Any) -> Any:
    """A task of whichever app is current when it is used: for code that knows no app.

    It is bound to every app that is complete and to those that will be; options are checked when it is
    (`ConfigError`).
    """

    def decorate(function: Callable[..., Any]) -> Any:
        name = options.get("name")
        _state.connect_on_app_finalize(lambda app: task_from_fun(app, function, options))
        for app in _state._get_active_apps():
            if app.finalized:
                task_from_fun(app, function, options)

        def find() -> Any:
            app = _state.get_current_app()
            return app.tasks[name or app.gen_task_name(function.__name__, function.__module__)]

        return Proxy(find, name=function.__name__, doc=function.__doc__)

    return _with_or_without_options(args, decorate, "@shared_task")


def task_from_fun(app: Celery, function: Callable[..., Any], options: dict[str, Any]) -> Task:
    """The task of a function in an app, made now unless its name is taken: the first one stays."""
    options = dict(options)
    check_options(options)
    for name in ("shared", "lazy", "filter"):
        options.pop(name, None)
    bind = bool(options.pop("bind", False))
    base = symbol_by_name(options.pop("base", None)) or app.Task
    name = options.pop("name", None) or app.gen_task_name(function.__name__, function.__module__)
    known = dict.get(app._tasks, name)
    if known is not None:
        _warn_of_twins(app, known, function, name)
        return known  # type: ignore[no-any-return]
    run = function if bind else staticmethod(function)
    cls = type(
        function.__name__,
        (base,),
        {
            "name": name,
            "run": run,
            "abstract": False,
            "_decorated": True,
            "_origin": function,
            "_given_options": tuple(options),
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "__qualname__": getattr(function, "__qualname__", function.__name__),
            "__annotations__": getattr(function, "__annotations__", {}),
            "__header__": staticmethod(function),
            "__wrapped__": run,
            **options,
        },
    )
    task: Task = cls()
    add(app, task, options)
    return task


def add(app: Celery, task: Task, options: dict[str, Any]) -> None:
    """Register a task object with an app and, once that exists, with its engine."""
    app._tasks[task.name] = task
    type(task).bind(app)
    original = task.run
    wrapped = with_autoretry(task, original, options)
    if wrapped is not original:
        vars(task)["_orig_run"] = original
        vars(task)["run"] = wrapped
    app._register(task)


def check_options(options: dict[str, Any]) -> None:
    """`ConfigError` for a priority that no scale has; `ImproperlyConfigured` for what is not there yet.

    Options that Celery does not know are kept as attributes and not checked.
    """
    priority = options.get("priority")
    if priority is not None:
        Scale("taskmq").declared(priority, "@task(priority)")
    for name, instead in _NOT_YET.items():
        if options.get(name):
            raise ImproperlyConfigured(f"@task({name}=...) is not there yet; {instead}")


def _with_or_without_options(
    args: tuple[Any, ...], decorate: Callable[[Any], Any], where: str
) -> Any:
    if len(args) == 1:
        if callable(args[0]):
            return decorate(args[0])
        raise TypeError(
            f"{where}: the argument is the function, options are keywords; got {args[0]!r}"
        )
    if args:
        raise TypeError(f"{where} takes exactly 1 argument ({len(args)} given)")
    return decorate


def _warn_of_twins(app: Celery, known: Any, function: Callable[..., Any], name: str) -> None:
    origin = getattr(known, "_origin", None)
    if origin is None or origin is function:
        return
    if (origin.__module__, origin.__qualname__) == (function.__module__, function.__qualname__):
        return
    warnings.warn(
        f"two tasks are named {name!r}: {origin.__module__}.{origin.__qualname__}, which stays, and "
        f"{function.__module__}.{function.__qualname__}; give one of them name=",
        DuplicateTaskNameWarning,
        stacklevel=3,
    )
