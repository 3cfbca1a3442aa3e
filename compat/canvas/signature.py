"""`Signature`: a call to be made later, as a mapping that survives JSON."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeVar

from taskmq.compat._state import app_or_default
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.compat.utils.functional import maybe_list
from taskmq.ids import uuid

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery
    from taskmq.compat.app.task import Task
    from taskmq.compat.result import AsyncResult

__all__ = ("Signature", "signature", "maybe_signature")

S = TypeVar("S", bound="Signature")
_KEYS = ("task", "args", "kwargs", "options", "subtask_type", "immutable")


class Signature(dict[str, Any]):
    """One call: `task`, `args`, `kwargs`, `options`, `subtask_type`, `immutable`.

    Mutable, as in Celery: `set` and `link` change it in place. After another step the result of that step
    is put before the arguments, unless it is immutable. Options are those of `apply_async`.
    """

    _app: Celery | None = None
    _type: Task | None = None

    def __init__(
        self,
        task: Any = None,
        args: Any = None,
        kwargs: Any = None,
        options: Any = None,
        type: Any = None,  # noqa: A002 - Celery's name
        subtask_type: str | None = None,
        immutable: bool = False,
        app: Celery | None = None,
        **ex: Any,
    ) -> None:
        self._app = app
        if isinstance(task, dict):
            super().__init__({key: task.get(key) for key in _KEYS})
            return
        self._type = type
        name = task
        if not isinstance(task, str) and task is not None:
            name, self._type = task.name, task
            self._app = app or task.app
        super().__init__(
            task=name,
            args=tuple(args or ()),
            kwargs=dict(kwargs or {}),
            options={**(options or {}), **ex},
            subtask_type=subtask_type,
            immutable=immutable,
        )

    # -- what it says -----------------------------------------------------------------------------

    @property
    def task(self) -> Any:
        """The name of the task."""
        return self["task"]

    name = task

    @property
    def args(self) -> Any:
        """The arguments."""
        return self["args"]

    @args.setter
    def args(self, value: Any) -> None:
        self["args"] = value

    @property
    def kwargs(self) -> Any:
        """The keyword arguments."""
        return self["kwargs"]

    @kwargs.setter
    def kwargs(self, value: Any) -> None:
        self["kwargs"] = value

    @property
    def options(self) -> Any:
        """The options of the call."""
        return self["options"]

    @options.setter
    def options(self, value: Any) -> None:
        self["options"] = value

    @property
    def subtask_type(self) -> Any:
        """chain, group, chord, or None."""
        return self["subtask_type"]

    @property
    def immutable(self) -> Any:
        """Whether it takes exactly its own arguments."""
        return self["immutable"]

    @immutable.setter
    def immutable(self, value: Any) -> None:
        self["immutable"] = value

    @property
    def id(self) -> str | None:
        """The task id it will have, if that is settled."""
        found: str | None = self.options.get("task_id")
        return found

    @property
    def app(self) -> Celery:
        """The app it is submitted with."""
        return app_or_default(self._app)

    @property
    def type(self) -> Any:
        """The task, where it is registered here; else a `NotRegistered` is raised."""
        return self._type or self.app.tasks[self["task"]]

    def __repr__(self) -> str:
        return self.reprcall()

    def reprcall(self, *args: Any, **kwargs: Any) -> str:
        """The call as it would be written."""
        shown = [repr(arg) for arg in (*args, *(self.args or ()))]
        shown += [f"{key}={value!r}" for key, value in {**self.kwargs, **kwargs}.items()]
        return f"{self['task']}({', '.join(shown)})"

    def __reduce__(self) -> Any:
        return _from_dict, (dict(self),)

    def __deepcopy__(self, memo: Any) -> Signature:
        copied: Signature = self.from_dict(deepcopy(dict(self), memo), app=self._app)
        return copied

    def __json__(self) -> Any:
        return dict(self)

    @classmethod
    def from_dict(cls, d: Any, app: Celery | None = None) -> Any:
        """The signature, chain, group or chord that a mapping describes."""
        if isinstance(d, Signature):
            return d
        from taskmq.compat.canvas import COMPOSITIONS

        kind = d.get("subtask_type") or str(d.get("task", "")).removeprefix("celery.")
        found: Any = COMPOSITIONS.get(kind)
        return found._from(d, app) if found is not None else Signature(d, app=app)

    # -- changing it ------------------------------------------------------------------------------

    def _merge(
        self, args: Any = None, kwargs: Any = None, options: Any = None, force: bool = False
    ) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
        """Arguments and options with more of them: more arguments come first, unless it is immutable."""
        if self.immutable and not force:
            return tuple(self.args), dict(self.kwargs), {**self.options, **(options or {})}
        return (
            (*(args or ()), *self.args),
            {**self.kwargs, **(kwargs or {})},
            {**self.options, **(options or {})},
        )

    def clone(self: S, args: Any = None, kwargs: Any = None, **options: Any) -> S:
        """A copy with more arguments and options."""
        copied: S = deepcopy(self)
        more_args, more_kwargs, more_options = copied._merge(args, kwargs, options)
        copied["args"], copied["kwargs"], copied["options"] = more_args, more_kwargs, more_options
        return copied

    partial = clone

    def replace(self: S, args: Any = None, kwargs: Any = None, options: Any = None) -> S:
        """A copy with other arguments or options in place of its own."""
        copied: S = deepcopy(self)
        for key, value in (("args", args), ("kwargs", kwargs), ("options", options)):
            if value is not None:
                copied[key] = value
        return copied

    def set(self: S, immutable: bool | None = None, **options: Any) -> S:
        """Set options in place; returns itself."""
        if immutable is not None:
            self.set_immutable(immutable)
        self.options.update(options)
        return self

    def set_immutable(self, immutable: bool) -> None:
        """Make it take exactly its own arguments, or not."""
        self["immutable"] = immutable

    def link(self, callback: Any) -> Any:
        """Call this with the result once the task succeeds; returns the callback."""
        return self._append("link", callback)

    def link_error(self, errback: Any) -> Any:
        """Call this with the id of the task once it fails; returns the callback."""
        return self._append("link_error", errback)

    def on_error(self: S, errback: Any) -> S:
        """As `link_error`, and returns itself."""
        self.link_error(errback)
        return self

    def _append(self, option: str, value: Any) -> Any:
        known = list(maybe_list(self.options.get(option)) or ())
        if value not in known:
            known.append(value)
        self.options[option] = known
        return value

    def flatten_links(self) -> list[Any]:
        """Itself and everything linked to it, in depth."""
        found: list[Any] = [self]
        for callback in maybe_list(self.options.get("link")) or ():
            found += maybe_signature(callback, app=self._app).flatten_links()
        return found

    def freeze(self, task_id: str | None = None, **kwargs: Any) -> Any:
        """Settle the task id now; returns the result it will have."""
        self.options.setdefault("task_id", task_id or uuid())
        return self.app.AsyncResult(self.options["task_id"], task_name=self["task"])

    def __or__(self, other: Any) -> Any:
        from taskmq.compat.canvas.chain import chain

        if not isinstance(other, Signature):
            return NotImplemented
        return chain(self, other, app=self._app or other._app)

    # -- calling it -------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the task here and now, in this process."""
        merged_args, merged_kwargs, _ = self._merge(args, kwargs)
        return self.type(*merged_args, **merged_kwargs)

    def delay(self, *args: Any, **kwargs: Any) -> AsyncResult:
        """Submit it with more arguments."""
        result: AsyncResult = self.apply_async(args, kwargs)
        return result

    def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Submit it with more arguments and options; those given here win."""
        given = {name: value for name, value in options.items() if value is not None}
        merged_args, merged_kwargs, merged_options = self._merge(args, kwargs, given)
        task = self._type or self.app.tasks.get(self["task"])
        if task is not None:
            return task.apply_async(merged_args, merged_kwargs, **merged_options)
        return self.app.send_task(self["task"], merged_args, merged_kwargs, **merged_options)

    def apply(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Run it in this process as a worker would; returns its `EagerResult`."""
        merged_args, merged_kwargs, merged_options = self._merge(args, kwargs, options)
        return self.type.apply(merged_args, merged_kwargs, **merged_options)

    def __getattr__(self, name: str) -> Any:
        if name in ("stamp", "election", "unchain_tasks"):
            raise NotImplementedError(f"signature.{name} is not there yet")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _from_dict(d: dict[str, Any]) -> Any:
    return Signature.from_dict(d)


def signature(varies: Any, *args: Any, **kwargs: Any) -> Any:
    """A signature from a task's name and arguments, or from a mapping."""
    app = kwargs.get("app")
    if isinstance(varies, Signature):
        return varies.clone()
    if isinstance(varies, dict):
        return Signature.from_dict(varies, app=app)
    return Signature(varies, *args, **kwargs)


def maybe_signature(d: Any, app: Celery | None = None) -> Any:
    """A mapping as a signature; a signature and None as they are."""
    if d is None:
        return None
    if isinstance(d, Signature):
        if app is not None and d._app is None:
            d._app = app
        return d
    if isinstance(d, dict):
        return Signature.from_dict(d, app=app)
    raise ImproperlyConfigured(f"signatures like task.s(...), got {d!r}")
