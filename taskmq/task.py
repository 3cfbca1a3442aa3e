"""A task: a function, its name and what it says about its messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from taskmq.errors import ConfigError
from taskmq.options import SubmitKeywords, TaskOptions
from taskmq.registry import check_task_name
from taskmq.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from typing_extensions import Unpack

    from taskmq.app import App
    from taskmq.context import Context
    from taskmq.result import Result
    from taskmq.signature import Signature

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["Task", "TaskOptions"]


class Task(Generic[P, R]):
    """Made by `@app.task`. `task(...)` runs the function here and now; the other verbs submit a message.

    Arguments are checked against the function at the call (`TypeError`), options too (`ConfigError`,
    `PriorityError`). A submit that returned is stored.
    """

    def __init__(
        self, app: App, fn: Callable[..., Any], name: str, options: TaskOptions | None = None
    ) -> None:
        self.app = app
        self.fn = fn
        self.name = check_task_name(name)
        self.options = options or TaskOptions()
        self.shape = Shape(fn, bind=self.options.bind, name=name)
        self.is_async = inspect.iscoroutinefunction(fn)
        self.__name__ = getattr(fn, "__name__", name)
        self.__doc__ = getattr(fn, "__doc__", None)
        self.__module__ = getattr(fn, "__module__", type(self).__module__)
        self.__wrapped__ = fn
        if isinstance(self.options.concurrency_key, str):
            self.shape.check_template(self.options.concurrency_key)

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"{self!r} cannot be pickled; pass its name, {self.name!r}")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function in this process, without a message.

        A bound task gets the context of the run it is called from, else one of its own that reports
        to nobody. An `async def` gives its coroutine.
        """
        if not self.options.bind:
            return self.fn(*args, **kwargs)  # type: ignore[no-any-return]
        from taskmq.context import context_for_call

        return self.fn(context_for_call(self), *args, **kwargs)  # type: ignore[no-any-return]

    def invoke(self, context: Context, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the function for a delivery: its value, or the coroutine of an `async def`.

        The one place where pools enter user code.
        """
        if self.options.bind:
            return self.fn(context, *args, **kwargs)
        return self.fn(*args, **kwargs)

    # The second form gives up checking the arguments: a keyword cannot be added to a ParamSpec.
    @overload
    def delay(self, *args: P.args, **kwargs: P.kwargs) -> Result[R]: ...

    @overload
    def delay(self, *args: Any, priority: int | None, **kwargs: Any) -> Result[R]: ...

    def delay(self, *args: Any, **kwargs: Any) -> Result[R]:
        """Submit with these arguments; `priority=` is the message's, not an argument (seed §8)."""
        if "priority" not in kwargs:
            return self.app.submit(self, args, kwargs)
        if self.shape.has("priority"):
            raise ConfigError(
                f"task {self.name}: its function has a parameter named 'priority', so delay(priority=...) "
                "could mean either; use apply_async(args, {'priority': ...}, priority=...)"
            )
        priority = kwargs.pop("priority")
        return self.app.submit(self, args, kwargs, priority=priority)

    def apply_async(
        self,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[SubmitKeywords],
    ) -> Result[R]:
        """Submit with options (`SubmitKeywords`), which win over the task's."""
        return self.app.submit(self, args, kwargs, **options)

    def submit(
        self,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[SubmitKeywords],
    ) -> Result[R]:
        """The same as `apply_async`."""
        return self.app.submit(self, args, kwargs, **options)

    def s(self, *args: Any, **kwargs: Any) -> Signature[R]:
        """A call to be made later; in a chain the result of the step before is put first."""
        from taskmq.signature import Signature

        return Signature(self, args, kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature[R]:
        """As `s`, but takes exactly these arguments whatever comes before it."""
        from taskmq.signature import Signature

        return Signature(self, args, kwargs, immutable=True)


if TYPE_CHECKING:

    class AsyncTask(Task[P, R]):
        """How a type checker sees the task of an `async def`: only the direct call differs."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:  # type: ignore[override]
            ...
