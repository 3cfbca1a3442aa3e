"""One run of a task: body in, `Completion` out. Shared by every pool; never raises.

    decode → find the task → context → before_run → middleware(invoke) → encode → after_run

Whatever user code raises is an ending of that run and of nothing else: SystemExit, KeyboardInterrupt
and GeneratorExit fail the task and leave the process running (I10).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from taskmq.codec import encode_failure, failure_line, format_traceback
from taskmq.context import Context, running
from taskmq.errors import (
    ConfigError,
    Ignore,
    MaxRetriesExceeded,
    MessageError,
    NotRegistered,
    Reject,
    Retry,
    TaskCancelled,
    check_retry,
)
from taskmq.failpoints import Failpoint, failpoint
from taskmq.hooks import RunEvent
from taskmq.policy.signatures import follow_of_embed
from taskmq.pools.base import Completion, Ending, Job
from taskmq.pools.interruptible import run_coroutine
from taskmq.retry import retry_priority
from taskmq.states import State

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.context import RunControl
    from taskmq.task import Task

log = logging.getLogger("taskmq.run")

RETRIES_EXHAUSTED = "retries-exhausted"
#: Characters kept of the reason of a `Reject`.
MAX_REASON = 4_096

_STATES: Mapping[Ending, State] = {
    Ending.SUCCEEDED: State.SUCCEEDED,
    Ending.FAILED: State.FAILED,
    Ending.RETRY: State.RETRYING,
    Ending.REQUEUE: State.QUEUED,
    Ending.BURY: State.DEAD,
    Ending.CANCELLED: State.REVOKED,
}


def execute(app: App, job: Job, control: RunControl) -> Completion:
    """Run a job on this thread. An `async def` gets an event loop of its own for the run."""
    run = _Run(app, job, control)
    try:
        early = run.prepare()
        if early is not None:
            return early
        with running(run.context):
            try:
                value = run.call()
                if asyncio.iscoroutine(value):
                    value = run_coroutine(value)
            except BaseException as exc:
                return run.raised(exc)
            return run.returned(value)
    except BaseException as exc:
        return _broken(job, exc)


async def aexecute(
    app: App,
    job: Job,
    control: RunControl,
    *,
    around: Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]],
) -> Completion:
    """Run a job of an `async def` on the running loop; its coroutine is awaited through `around`.

    Unlike `execute` it lets a cancellation pass: whoever cancelled knows what it means.
    """
    run = _Run(app, job, control)
    try:
        early = run.prepare()
        if early is not None:
            return early
        with running(run.context):
            try:
                value = run.call()
                if asyncio.iscoroutine(value):
                    value = await around(value)
            except asyncio.CancelledError:
                raise
            except BaseException as exc:
                return run.raised(exc)
            return run.returned(value)
    except asyncio.CancelledError:
        raise
    except BaseException as exc:
        return _broken(job, exc)


def interrupted(job: Job, exc: BaseException) -> Completion:
    """The completion of a run that a limit hit outside of the task's own code."""
    return Completion(
        number=job.number,
        ending=Ending.FAILED,
        body=encode_failure(exc),
        error=failure_line(exc),
    )


def _broken(job: Job, exc: BaseException) -> Completion:
    # Only a fault of our own, or a limit that hit between two of our lines, comes here.
    log.error("the run of task %s could not be completed", job.message.task_id, exc_info=exc)
    return interrupted(job, exc)


class _Run:
    """The steps of one run, the same for both kinds of pool."""

    __slots__ = ("app", "args", "context", "control", "follow", "job", "kwargs", "started", "task")

    context: Context
    task: Task[..., Any]

    def __init__(self, app: App, job: Job, control: RunControl) -> None:
        self.app = app
        self.job = job
        self.control = control
        self.args: Sequence[Any] = ()
        self.kwargs: dict[str, Any] = {}
        self.follow: str | None = None
        self.started = 0.0

    def prepare(self) -> Completion | None:
        """Decode and build the context; a completion when that is as far as this message gets."""
        message = self.job.message
        try:
            self.task = self.app.registry[message.task]
        except NotRegistered as exc:
            return self._ended(Ending.UNREGISTERED, exc)
        try:
            self.args, self.kwargs, embed = self.app.codec.decode_body(
                message.body,
                message.content_type,
                message.content_encoding,
                message.headers.get("compression"),
            )
            if message.follow is None and embed:
                self.follow = follow_of_embed(embed, message.headers)
        except (MessageError, TypeError, ValueError) as exc:
            return self._ended(Ending.UNREADABLE, exc)
        self.context = Context(
            app=self.app,
            task=self.task,
            message=message,
            deliveries=self.job.deliveries,
            worker=self.job.worker,
            control=self.control,
        )
        return None

    def call(self) -> Any:
        """Enter user code: the value, or a coroutine."""
        failpoint(Failpoint.BEFORE_START)
        hooks = self.app.hooks
        if hooks.before_run:
            hooks.before_run.send(self._event())
        self.started = self.app.clock.monotonic()
        if not hooks.middleware:
            return self.task.invoke(self.context, self.args, self.kwargs)
        return hooks.around(
            lambda: self.task.invoke(self.context, self.args, self.kwargs), self.context
        )()

    def returned(self, value: Any) -> Completion:
        """The task returned. A value that cannot be encoded is a failure that says so."""
        failpoint(Failpoint.AFTER_RUN)
        runtime = self._runtime()
        try:
            codec = self.app.codec_for(self.task.options.serializer)
            body, content_type = codec.encode_value(value)
        except Exception as exc:
            # Not only EncodeError: the value's own methods ran.
            return self.raised(exc)
        completion = Completion(
            number=self.job.number,
            ending=Ending.SUCCEEDED,
            body=body,
            content_type=content_type,
            follow=self.follow,
            children=self.context.children,
            runtime=runtime,
        )
        if self.app.hooks.after_run:
            self.app.hooks.after_run.send(self._event(state=State.SUCCEEDED, value=value))
        return completion

    def raised(self, exc: BaseException) -> Completion:
        """The task raised."""
        failpoint(Failpoint.AFTER_RUN)
        completion = self._by_kind(exc)
        if self.app.hooks.after_run:
            event = self._event(
                state=_STATES.get(completion.ending),
                exception=exc,
                traceback=completion.traceback,
            )
            self.app.hooks.after_run.send(event)
        return completion

    def _by_kind(self, exc: BaseException) -> Completion:
        if isinstance(exc, Retry):
            return self._retry_asked(exc)
        if isinstance(exc, Reject):
            ending = Ending.REQUEUE if exc.requeue else Ending.BURY
            return replace(self._ended(ending, exc), reason=_reason(exc))
        if isinstance(exc, Ignore):
            return self._ended(Ending.IGNORED, None)
        if isinstance(exc, TaskCancelled):
            return self._ended(Ending.CANCELLED, exc)
        policy = self.task.options.retry
        exhausted = isinstance(exc, MaxRetriesExceeded)
        if policy is not None and policy.wants(exc):
            retries = self.job.message.retries
            if not policy.exhausted(retries):
                return self._retry(exc, delay=policy.wait(retries, self.app.random))
            exhausted = True
        failed = self._ended(Ending.FAILED, exc, traceback=True)
        return replace(
            failed,
            reason=RETRIES_EXHAUSTED if exhausted else "",
            recycle=isinstance(exc, MemoryError),
        )

    def _retry_asked(self, exc: Retry) -> Completion:
        try:
            # Again, although its constructor checks: attributes can be set, and a subclass has its own.
            delay, priority, body = check_retry(exc.delay, exc.priority, exc.body)
        except (ConfigError, AttributeError) as fault:
            fault.__cause__ = exc
            return self._ended(Ending.FAILED, fault, traceback=True)
        cause = exc.cause if isinstance(exc.cause, BaseException) else exc
        return self._retry(cause, delay=delay, priority=priority, new_body=body)

    def _retry(
        self,
        cause: BaseException,
        *,
        delay: float,
        priority: int | None = None,
        new_body: bytes | None = None,
    ) -> Completion:
        if priority is None:
            rule = self.task.options.retry_priority or self.app.config.retry_priority
            priority = retry_priority(self.job.message.priority, rule)
        return replace(
            self._ended(Ending.RETRY, cause, traceback=not isinstance(cause, Retry)),
            delay=delay,
            priority=priority,
            new_body=new_body,
        )

    def _ended(
        self, ending: Ending, exc: BaseException | None, *, traceback: bool = False
    ) -> Completion:
        started = bool(self.started)
        return Completion(
            number=self.job.number,
            ending=ending,
            body=None if exc is None else encode_failure(exc),
            error="" if exc is None else failure_line(exc),
            traceback=_traceback(exc) if traceback and exc is not None else None,
            follow=self.follow,
            children=self.context.children if started else (),
            runtime=self._runtime() if started else 0.0,
        )

    def _runtime(self) -> float:
        return max(0.0, self.app.clock.monotonic() - self.started)

    def _event(
        self,
        *,
        state: State | None = None,
        value: Any = None,
        exception: BaseException | None = None,
        traceback: str | None = None,
    ) -> RunEvent:
        return RunEvent(
            context=self.context,
            task=self.task,
            args=tuple(self.args),
            kwargs=self.kwargs,
            state=state,
            value=value,
            exception=exception,
            traceback=traceback,
        )


def _reason(exc: Reject) -> str:
    """The reason as the dead letter keeps it: an operator reads the beginning of a long one."""
    reason = exc.reason if isinstance(exc.reason, str) else failure_line(exc)
    left = len(reason) - MAX_REASON
    return reason if left <= 0 else f"{reason[:MAX_REASON]}… ({left:,} characters left out)"


def _traceback(exc: BaseException) -> str:
    """The traceback from the task's first own line on; how the pool got there helps nobody."""
    first = exc.__traceback__
    while first is not None and _is_ours(first):
        first = first.tb_next
    if first is not None:
        exc.__traceback__ = first
    return format_traceback(exc)


def _is_ours(step: TracebackType) -> bool:
    return str(step.tb_frame.f_globals.get("__name__", "")).startswith("taskmq.")
