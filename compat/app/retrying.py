"""`self.retry()` and `autoretry_for`.

A retry keeps the task's id, its place in a workflow and, unless one is given, its priority (P5). It is
carried out when the run is settled, in one transaction with it, not published from inside the task:
a worker that dies between the two can neither lose nor double it. Only a retry that changes more than
arguments, time and priority (another queue, other limits) goes out as a message of its own.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from taskmq.compat.exceptions import Ignore, ImproperlyConfigured, Reject, Retry, RetryPlan
from taskmq.compat.utils.time import (
    get_exponential_backoff_interval,
    maybe_iso8601,
    maybe_make_aware,
)
from taskmq.errors import TaskCancelled, TaskSignal, nearest

if TYPE_CHECKING:
    from taskmq.compat.app.request import Context
    from taskmq.compat.app.task import Task

__all__ = ("retry", "with_autoretry", "by_hand")

#: The options of `retry` that a message of its own carries.
_OTHER_MESSAGE = ("queue", "time_limit", "soft_time_limit", "expires", "headers", "ignore_result")
#: Raised to say how the run ends: never a reason to run it again.
_ENDINGS = (Retry, Ignore, Reject, TaskSignal, TaskCancelled)


def retry(
    task: Task,
    *,
    args: Any,
    kwargs: Any,
    exc: BaseException | None,
    throw: bool,
    eta: datetime | str | None,
    countdown: float | None,
    max_retries: int | None,
    options: dict[str, Any],
) -> Retry:
    """Raise (or, with `throw=False`, return) the `Retry` that ends the run.

    When no retry is left, `exc` is raised, else `MaxRetriesExceededError` from what is being handled.
    Outside of a run nothing can be retried: `exc`, or what is being handled, is raised.
    """
    request: Context = task.request
    if request.called_directly:
        _raise_cause(exc or Retry("Task can be retried", None))
    limit = task.max_retries if max_retries is None else max_retries
    if limit is not None and request.retries + 1 > limit:
        _exhausted(task, request, exc)
    delay, when = _wait(task, eta, countdown)
    ret = Retry(exc=exc or sys.exc_info()[1], when=when, is_eager=request.is_eager)
    new_args = request.args if args is None else args
    new_kwargs = request.kwargs if kwargs is None else kwargs
    changed = args is not None or kwargs is not None
    if request.is_eager:
        ret.sig = (list(new_args or ()), dict(new_kwargs or {}))
        ret.plan = RetryPlan(delay)
    else:
        ret.plan = _plan(task, request, delay, new_args, new_kwargs, changed, options)
    if not throw:
        request._pending_retry = ret
        return ret
    # From what was being handled, so that the traceback shows what went wrong.
    raise ret from sys.exc_info()[1]


def _wait(
    task: Task, eta: datetime | str | None, countdown: float | None
) -> tuple[float, float | datetime]:
    """Seconds to wait, and the same as `Retry.when` shows it."""
    if eta is not None:
        moment = maybe_iso8601(eta)
        if moment is None:
            raise ImproperlyConfigured(f"retry(eta=): a datetime or ISO 8601 text, got {eta!r}")
        moment = maybe_make_aware(moment, task.app.timezone)
        return max(0.0, moment.timestamp() - task.app.engine.clock.now()), moment
    seconds = task.default_retry_delay if countdown is None else countdown
    if isinstance(seconds, timedelta):
        seconds = seconds.total_seconds()
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ImproperlyConfigured(f"retry(countdown=): seconds, got {seconds!r}")
    return max(0.0, float(seconds)), seconds


def _exhausted(task: Task, request: Context, exc: BaseException | None) -> None:
    if exc is not None:
        _raise_cause(exc)
    raise task.MaxRetriesExceededError(
        f"Can't retry {task.name}[{request.id}] args:{request.args} kwargs:{request.kwargs}",
        task_args=request.args,
        task_kwargs=request.kwargs,
    ) from sys.exc_info()[1]


def _raise_cause(exc: BaseException) -> None:
    """Raise what is being handled if there is something, so that its traceback stays whole."""
    handled = sys.exc_info()[1]
    if handled is None or handled is exc:
        raise exc
    if isinstance(exc, Retry):
        raise handled
    raise exc from handled


def _plan(
    task: Task,
    request: Context,
    delay: float,
    args: Any,
    kwargs: Any,
    changed: bool,
    options: dict[str, Any],
) -> RetryPlan:
    options = {name: value for name, value in options.items() if value is not None}
    priority = task.app.scale.given(
        options.pop("priority", None), f"task {task.name}: retry(priority=)"
    )
    body = None
    if changed:
        app = task.app.engine
        body = app.codec_for(task.adapter.options.serializer).encode_body(args, kwargs)[0]
    if not options:
        return RetryPlan(delay, priority, body)
    unknown = [name for name in options if name not in _OTHER_MESSAGE]
    if unknown:
        raise ImproperlyConfigured(
            f"task {task.name}: retry() takes no option {unknown[0]!r}."
            f"{nearest(unknown[0], (*_OTHER_MESSAGE, 'priority', 'countdown', 'eta', 'max_retries', 'exc'))}"
        )
    _send_copy(task, request, delay, priority, body, options)
    return RetryPlan(delay, priority, body, sent=True)


def _send_copy(
    task: Task,
    request: Context,
    delay: float,
    priority: int | None,
    body: bytes | None,
    options: dict[str, Any],
) -> None:
    """Submit the retry as a message of its own: same task id, same workflow, one retry more."""
    from taskmq.compat.app.options import expiry

    assert request._engine is not None
    app = task.app
    message = request._engine.message
    changes: dict[str, Any] = {
        "message_id": app.engine.new_id(),
        "retries": message.retries + 1,
        "eta": app.engine.clock.now() + delay,
    }
    if priority is not None:
        changes["priority"] = priority
    if body is not None:
        changes["body"] = body
    if "queue" in options:
        changes["queue"] = app.amqp.queues.named(options["queue"])
    for name in ("time_limit", "soft_time_limit"):
        if name in options:
            changes[name] = float(options[name])
    if "expires" in options:
        changes["expires_at"] = expiry(app, options["expires"], task.name)
    if "headers" in options:
        changes["headers"] = {**message.headers, **options["headers"]}
    if "ignore_result" in options:
        changes["store_result"] = not options["ignore_result"]
    app.engine.publish([replace(message, **changes)])


def by_hand(exc: Retry, task: Task) -> RetryPlan:
    """The plan of a `Retry` that task code raised itself instead of calling `self.retry()`."""
    when = exc.when
    if isinstance(when, datetime):
        now = task.app.engine.clock.now()
        return RetryPlan(max(0.0, maybe_make_aware(when, timezone.utc).timestamp() - now))
    return RetryPlan(float(task.default_retry_delay if when is None else max(0.0, when)))


def with_autoretry(task: Task, run: Callable[..., Any], options: dict[str, Any]) -> Any:
    """`run`, retrying by itself on the exceptions of `autoretry_for`; `run` itself without any.

    `options` are those of the decorator and win over attributes of the class. Source: Celery's task
    guide, "Automatic retry for known exceptions".
    """

    def option(name: str, default: Any) -> Any:
        return options.get(name, getattr(task, name, default))

    on = tuple(option("autoretry_for", ()) or ())
    if not on:
        return run
    never = (*_ENDINGS, *(option("dont_autoretry_for", ()) or ()))
    settings = dict(option("retry_kwargs", {}) or {})
    backoff = option("retry_backoff", False)
    factor = int(max(1.0, float(backoff))) if backoff else 0
    maximum = int(option("retry_backoff_max", 600))
    jitter = bool(option("retry_jitter", True))

    def again(exc: Exception) -> None:
        kwargs = dict(settings)
        if factor:
            kwargs["countdown"] = get_exponential_backoff_interval(
                factor, task.request.retries, maximum, jitter, random=task.app.engine.random
            )
        raise task.retry(exc=exc, **kwargs)

    if inspect.iscoroutinefunction(run):

        @functools.wraps(run)
        async def arun(*args: Any, **kwargs: Any) -> Any:
            try:
                return await run(*args, **kwargs)
            except never:
                raise
            except on as exc:
                again(exc)

        return arun

    @functools.wraps(run)
    def retrying(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except never:
            raise
        except on as exc:
            again(exc)

    return retrying
