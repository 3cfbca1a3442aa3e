"""What a running task can ask and do: who it is, publish, report, stop, try again."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar, overload

from taskmq.errors import ConfigError, MaxRetriesExceeded, Retry, TaskCancelled, TransportError
from taskmq.message import Message
from taskmq.options import SubmitKeywords, check_count, check_seconds
from taskmq.priority import check_priority
from taskmq.result import GroupResult, Result
from taskmq.retry import RetryPolicy, retry_priority

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from taskmq.app import App
    from taskmq.signature import Call
    from taskmq.task import Task

log = logging.getLogger("taskmq.context")

R = TypeVar("R")

# The store is asked for a revocation at most this often, however often a task asks.
_LOOK_EVERY = 0.1
_DEFAULT_POLICY = RetryPolicy()
#: Children a result names, and characters of a progress label.
MAX_CHILDREN = 10_000
MAX_LABEL = 255

_CURRENT: ContextVar[Context | None] = ContextVar("taskmq_context", default=None)


def current_context() -> Context | None:
    """The context of the task that is running here, None outside of one."""
    return _CURRENT.get()


@contextmanager
def running(context: Context) -> Iterator[Context]:
    """Make `context` the current one inside the block; pools wrap a run in it."""
    token = _CURRENT.set(context)
    try:
        yield context
    finally:
        _CURRENT.reset(token)


class RunControl(Protocol):
    """What a pool lends to a run."""

    def report(self, value: Any, label: str) -> None:
        """Pass progress on to the worker."""

    def cancelled(self) -> str | None:
        """Why this run should stop, as far as the pool knows."""


class Context:
    """One run of a task, passed first to a bound task (`bind=True`), else had by `current_context()`."""

    def __init__(
        self,
        *,
        app: App,
        task: Task[..., Any],
        message: Message,
        deliveries: int = 1,
        worker: str = "",
        control: RunControl,
    ) -> None:
        self.app = app
        self.task = task
        self.message = message
        self.deliveries = deliveries
        self.worker = worker
        self.control = control
        self._children: list[str] = []
        self._children_full = False
        self._next_look = 0.0
        self._look_failed = False
        self.warned_of_waiting = False

    def __repr__(self) -> str:
        return f"<context of {self.task.name} {self.task_id}>"

    @property
    def task_id(self) -> str:
        """The id users see; a retry and a redelivery keep it."""
        return self.message.task_id

    @property
    def retries(self) -> int:
        """How often this message was retried; 0 in the first run."""
        return self.message.retries

    @property
    def priority(self) -> int:
        """The message's priority, which what this run publishes inherits (P6)."""
        return self.message.priority

    @property
    def children(self) -> tuple[str, ...]:
        """The task ids this run has published, in order; the first 10,000 of them."""
        return tuple(self._children)

    def note_child(self, task_id: str) -> None:
        """Count a task that this run has submitted in another way among its children."""
        self._note((task_id,))

    def _note(self, task_ids: Iterable[str]) -> None:
        for task_id in task_ids:
            if len(self._children) < MAX_CHILDREN:
                self._children.append(task_id)
            elif not self._children_full:
                self._children_full = True
                log.warning(
                    "task %s has more than %d children; its result names only these",
                    self.task_id,
                    MAX_CHILDREN,
                )

    @overload
    def publish(
        self,
        task: Task[..., R],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[SubmitKeywords],
    ) -> Result[R]: ...

    @overload
    def publish(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[SubmitKeywords],
    ) -> Result[Any]: ...

    @overload
    def publish(self, task: Call, **options: Unpack[SubmitKeywords]) -> Any: ...

    def publish(
        self,
        task: Task[..., Any] | str | Call,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[SubmitKeywords],
    ) -> Any:
        """Submit a child: as `app.submit`, at this run's priority unless one is given (P6).

        A signature or a workflow is submitted as its `apply_async` does. The child is stored when this
        returns, whatever becomes of this run.
        """
        from taskmq.signature import Call

        options.setdefault("parent_priority", self.message.priority)
        options.setdefault("parent_id", self.task_id)
        options.setdefault("root_id", self.message.root_id or self.task_id)
        if isinstance(task, Call):
            if args or kwargs is not None:
                raise ConfigError(f"publish: {task!r} has its arguments already")
            result = task.apply_async(**options)
        else:
            result = self.app.submit(task, args, kwargs, **options)
        ends = result.results if isinstance(result, GroupResult) else (result,)
        self._note(end.id for end in ends if isinstance(end, Result))
        return result

    def progress(self, value: Any, label: str = "") -> None:
        """Store a JSON value that `result.progress` shows while the task runs; `label` names the stage.

        Raises `EncodeError` for a value that is not JSON, and `ConfigError` for a label that is not text
        of at most 255 characters.
        """
        if not isinstance(label, str) or len(label) > MAX_LABEL:
            raise ConfigError(
                f"progress(label): text of at most {MAX_LABEL} characters, got {label!r:.100}"
            )
        self.control.report(value, label)

    def check_cancelled(self) -> None:
        """Raise `TaskCancelled` when this run was revoked: the cooperative way to stop (P19).

        Cheap enough for a loop: the pool is asked each time, the store at most every 0.1 s.
        """
        reason = self.control.cancelled()
        if reason is None and self._revoked():
            reason = "revoked"
        if reason is not None:
            raise TaskCancelled(f"task {self.task_id} should stop: {reason}")

    def _revoked(self) -> bool:
        now = self.app.clock.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + _LOOK_EVERY
        try:
            return self.app.transport.operators.is_revoked(self.task_id)
        except TransportError as exc:
            # A store that is busy for a moment is no reason to fail a task that only asked.
            level = logging.DEBUG if self._look_failed else logging.WARNING
            self._look_failed = True
            log.log(level, "could not look whether task %s is revoked: %s", self.task_id, exc)
            return False

    def retry(
        self,
        *,
        delay: float | None = None,
        priority: int | None = None,
        exc: BaseException | None = None,
        max_retries: int | None = None,
    ) -> NoReturn:
        """End this run and try again: raises `Retry`, so nothing after it runs.

        `delay` in seconds, else the task's `RetryPolicy` says; the priority is kept, or lowered by one
        under `retry_priority="lower"`, unless given (P5). When no retry is left `exc` is raised, else
        `MaxRetriesExceeded` from the exception being handled. `max_retries` overrides the policy's.
        """
        policy = self.task.options.retry or _DEFAULT_POLICY
        where = f"task {self.task.name}: retry"
        limit = policy.max_retries
        if max_retries is not None:
            limit = check_count(max_retries, f"{where}(max_retries)", low=0)
        cause = exc or sys.exc_info()[1]
        if limit is not None and self.retries >= limit:
            if exc is not None:
                raise exc
            raise MaxRetriesExceeded(
                f"task {self.task.name} {self.task_id} was retried {self.retries} times, which is all it may"
            ) from cause
        if delay is None:
            seconds = policy.wait(self.retries, self.app.random)
        else:
            seconds = check_seconds(delay, f"{where}(delay)")
        if priority is None:
            rule = self.task.options.retry_priority or self.app.config.retry_priority
            level = retry_priority(self.priority, rule)
        else:
            level = check_priority(priority, f"{where}(priority)")
        number = f"{self.retries + 1}" + (f" of {limit}" if limit is not None else "")
        raise Retry(
            f"retry {number} in {seconds:g} s" + (f": {cause!r}" if cause is not None else ""),
            delay=seconds,
            priority=level,
            cause=cause,
        ) from cause


class _NoControl:
    """The control of a task that is called as a function: progress goes nowhere, nothing cancels it."""

    def report(self, value: Any, label: str) -> None:
        log.debug("progress of a direct call: %r %s", value, label)

    def cancelled(self) -> str | None:
        return None


def context_for_call(task: Task[..., Any]) -> Context:
    """The context of a bound task that is called as a function.

    Inside a run the call is part of that run: it reports, stops and publishes as the run does.
    """
    outer = current_context()
    if outer is not None:
        return Context(
            app=outer.app,
            task=task,
            message=outer.message,
            deliveries=outer.deliveries,
            worker=outer.worker,
            control=outer.control,
        )
    name = f"direct-{task.app.new_id()}"
    message = Message(
        message_id=name,
        task_id=name,
        task=task.name,
        queue=task.options.queue or task.app.config.default_queue,
        body=b"[[],{},null]",
        priority=task.app.default_priority(task),
    )
    return Context(app=task.app, task=task, message=message, control=_NoControl())
