"""`@app.task`: how a function becomes a task, and how a type checker sees it do so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from taskmq.errors import ConfigError
from taskmq.home import main_module_name
from taskmq.options import TASK_OPTIONS, TaskOptions, unknown_options
from taskmq.task import Task

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from taskmq.app import App
    from taskmq.context import Context
    from taskmq.task import AsyncTask

P = ParamSpec("P")
R = TypeVar("R")


def declaration(
    app: App, task_class: type[Task[..., Any]], options: Mapping[str, Any]
) -> Callable[[Callable[..., Any]], Task[..., Any]]:
    """What registers a function with these options (`TaskKeywords` and `bind`) as a task of this app.

    `ConfigError` for an unknown option or a wrong value, here and not when the function comes.
    """
    unknown_options(options, TASK_OPTIONS, "@task")
    given = dict(options)
    name = given.pop("name", None)
    declared = TaskOptions(**given)

    def declare(fn: Callable[..., Any]) -> Task[..., Any]:
        if not callable(fn):
            raise ConfigError(f"@app.task: decorates a function, got {fn!r}")
        return app.add_task(task_class(app, fn, name or task_name(fn), declared))

    return declare


def task_name(fn: Callable[..., Any]) -> str:
    """`module.function`, the name a task has unless it is given one."""
    module = getattr(fn, "__module__", None) or type(fn).__module__
    if module == "__main__":
        module = main_module_name()
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    return f"{module}.{name.replace('<locals>.', '')}"


if TYPE_CHECKING:

    class TaskDecorator(Protocol):
        """`@app.task(...)` on a function or an `async def`."""

        @overload
        def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...

        @overload
        def __call__(self, fn: Callable[P, R], /) -> Task[P, R]: ...

    class BoundTaskDecorator(Protocol):
        """`@app.task(bind=True, ...)`: the function takes the context first, its callers do not."""

        @overload
        def __call__(
            self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
        ) -> AsyncTask[P, R]: ...

        @overload
        def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[P, R]: ...
