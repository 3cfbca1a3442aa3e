"""From a Celery call to a stored message: options, route, signals, submit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskmq import errors
from taskmq.compat import signals
from taskmq.compat._state import get_current_worker_task
from taskmq.compat.app.adapter import AdapterTask
from taskmq.compat.app.options import ancestors, checked, engine_options, follow_of, routed
from taskmq.ids import uuid

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery
    from taskmq.compat.app.task import Task
    from taskmq.compat.result import AsyncResult
    from taskmq.message import Message

__all__ = ("publish", "build", "submit", "result_for")


def publish(
    app: Celery,
    name: str,
    args: Any,
    kwargs: Any,
    *,
    task: Task | None,
    options: Mapping[str, Any],
) -> AsyncResult:
    """Submit one call and return its result.

    Raises `OperationalError` (kombu's) when it could not be stored, `ImproperlyConfigured` for an option
    or a value that is not accepted, `PriorityError` for a priority out of range, `TypeError` for arguments
    the task does not take, `EncodeError` for ones that cannot be sent. Then nothing was submitted.
    """
    given = checked(app, name, options)
    call = routed(app, name, given, args, kwargs, task)
    ancestors(call)
    if signals.before_task_publish or signals.after_task_publish:
        return _with_signals(app, name, args, kwargs, task, call)
    message = build(app, name, args, kwargs, task=task, options=call)
    submit(app, [message])
    return result_for(app, message)


def build(
    app: Celery,
    name: str,
    args: Any,
    kwargs: Any,
    *,
    task: Task | None,
    options: Mapping[str, Any],
) -> Message:
    """The message of one call whose options are checked and routed; nothing is submitted.

    It gets an id where the options name none.
    """
    engine = app.engine
    made = engine_options(app, name, options)
    follow = follow_of(app, options)
    if follow is not None:
        made["follow"] = follow
    target: Any = engine.registry.get(name, name) if task is not None else name
    if isinstance(target, AdapterTask):
        # What the task says anyway is left to its plan.
        declared = target.options
        for option in ("queue", "time_limit", "soft_time_limit"):
            if option in made and made[option] == getattr(declared, option):
                del made[option]
    try:
        return engine.message(target, _sequence(args, name), _mapping(kwargs, name), **made)
    except errors.EncodeError as exc:
        # The class that Celery code catches where arguments cannot be sent.
        from kombu.exceptions import EncodeError

        raise EncodeError(str(exc)) from exc


def submit(app: Celery, messages: list[Message]) -> None:
    """Store these messages, all or none; `OperationalError` from the reason when that failed."""
    try:
        app.engine.publish(messages)
    except errors.SubmitUnknown as exc:
        from kombu.exceptions import OperationalError

        raise OperationalError(f"it is not known whether the message was stored: {exc}") from exc
    except errors.TransportError as exc:
        from kombu.exceptions import OperationalError

        raise OperationalError(str(exc)) from exc


def result_for(app: Celery, message: Message) -> AsyncResult:
    """The result of a submitted message, noted as a child of the task that submitted it."""
    result = app.AsyncResult(message.task_id, task_name=message.task)
    result.ignored = not message.store_result
    parent = get_current_worker_task()
    if parent is not None:
        parent.add_trail(result)
    return result


def _with_signals(
    app: Celery,
    name: str,
    args: Any,
    kwargs: Any,
    task: Task | None,
    options: dict[str, Any],
) -> AsyncResult:
    """Publish between the two signals; receivers may change the headers."""
    task_id = options.setdefault("task_id", uuid())
    custom = options["headers"] = dict(options.get("headers") or {})
    headers: dict[str, Any] = {
        **custom,
        "lang": "py",
        "task": name,
        "id": task_id,
        "root_id": options.get("root_id") or task_id,
        "parent_id": options.get("parent_id"),
        "retries": options.get("retries", 0),
        "eta": options.get("eta"),
        "expires": options.get("expires"),
        "timelimit": [options.get("time_limit"), options.get("soft_time_limit")],
        "shadow": options.get("shadow"),
        "group": options.get("group_id"),
        "origin": app.origin,
        "argsrepr": repr(args),
        "kwargsrepr": repr(kwargs),
    }
    sent = dict(headers)
    body: tuple[Any, ...] = (list(args or ()), dict(kwargs or {}), {})
    properties = {"correlation_id": task_id, "priority": options.get("priority")}
    common = {"body": body, "exchange": "", "routing_key": options["queue"], "headers": headers}
    signals.before_task_publish.send(
        sender=name, properties=properties, declare=[], retry_policy={}, **common
    )
    # What a receiver added or changed travels with the message; the fixed ones have places of their own.
    custom.update({k: v for k, v in headers.items() if k not in sent or v != sent[k]})
    message = build(app, name, args, kwargs, task=task, options=options)
    submit(app, [message])
    signals.after_task_publish.send(sender=name, **common)
    return result_for(app, message)


def _sequence(args: Any, name: str) -> Any:
    if args is None:
        return ()
    if isinstance(args, (list, tuple)):
        return args
    if isinstance(args, (str, bytes, Mapping)) or not hasattr(args, "__iter__"):
        raise TypeError(f"task {name}: task args must be a list or tuple, got {args!r}")
    return tuple(args)


def _mapping(kwargs: Any, name: str) -> Any:
    if kwargs is None:
        return {}
    if not isinstance(kwargs, Mapping):
        raise TypeError(f"task {name}: task keyword arguments must be a mapping, got {kwargs!r}")
    return kwargs
