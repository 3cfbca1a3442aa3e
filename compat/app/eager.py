"""Running a task here and now as a worker would: `task.apply()` and `task_always_eager`.

Arguments take the way through the serializer first, so that what would fail when submitted fails here
too. Times are not waited for, retries run at once.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskmq.compat import states
from taskmq.compat._einfo import ExceptionInfo
from taskmq.compat.app.errbacks import takes_failure
from taskmq.compat.app.request import Context
from taskmq.compat.app.trace import Run, ending_state
from taskmq.compat.exceptions import Retry
from taskmq.compat.utils.functional import maybe_list
from taskmq.ids import uuid
from taskmq.states import State

if TYPE_CHECKING:
    from taskmq.compat.app.task import Task
    from taskmq.compat.result import EagerResult

__all__ = ("apply", "apply_eagerly")

log = logging.getLogger("taskmq.compat.eager")


def apply_eagerly(task: Task, args: Any, kwargs: Any, options: Mapping[str, Any]) -> EagerResult:
    """`apply_async` under `task_always_eager`: the call is checked and encoded, then run."""
    from taskmq.compat.app.options import checked, routed
    from taskmq.compat.app.publish import build
    from taskmq.compat.result import denied_join_result

    app = task.app
    task_id = options.get("task_id") or uuid()
    given = checked(app, task.name, options)
    link, link_error = given.pop("link", None), given.pop("link_error", None)
    given["task_id"] = task_id
    call = routed(app, task.name, given, args, kwargs, task)
    message = build(app, task.name, args, kwargs, task=task, options=call)
    decoded_args, decoded_kwargs, _ = app.engine.codec.decode_body(
        message.body, message.content_type, message.content_encoding
    )
    with denied_join_result():
        return apply(
            task,
            decoded_args,
            decoded_kwargs,
            link=link,
            link_error=link_error,
            task_id=task_id,
            retries=given.get("retries", 0),
            headers=given.get("headers"),
            options={
                "queue": call["queue"],
                "priority": app.scale.out(message.priority),
                "ignore_result": not message.store_result,
            },
        )


def apply(
    task: Task,
    args: Any,
    kwargs: Any,
    *,
    link: Any = None,
    link_error: Any = None,
    task_id: str | None = None,
    retries: int = 0,
    throw: bool | None = None,
    headers: Any = None,
    loglevel: Any = None,
    logfile: Any = None,
    options: Mapping[str, Any],
) -> EagerResult:
    """Run a task and every retry it asks for; its result, or its error with `throw`."""
    from taskmq.compat.result import EagerResult

    app = task.app
    throw = bool(app.conf.task_eager_propagates) if throw is None else throw
    task_id = task_id or uuid()
    args, kwargs = list(args or ()), dict(kwargs or {})
    while True:
        request = Context(
            headers or {},
            id=task_id,
            task=task.name,
            args=tuple(args),
            kwargs=kwargs,
            retries=retries,
            is_eager=True,
            called_directly=False,
            hostname=socket.gethostname(),
            root_id=task_id,
            correlation_id=task_id,
            headers=headers or None,
            loglevel=loglevel or 0,
            logfile=logfile,
            callbacks=maybe_list(link),
            errbacks=maybe_list(link_error),
            ignore_result=bool(options.get("ignore_result", task.ignore_result)),
            delivery_info={
                "is_eager": True,
                "exchange": options.get("exchange"),
                "routing_key": options.get("routing_key") or options.get("queue"),
                "priority": options.get("priority"),
            },
        )
        state, value, einfo, again = _once(task, request, throw)
        if again is None:
            break
        args, kwargs = again
        retries += 1
    result = EagerResult(
        task_id, value, state, traceback=einfo.traceback if einfo else None, name=task.name
    )
    if app.conf.task_store_eager_result and not request.ignore_result:
        _store(task, result)
    return result


def _once(
    task: Task, request: Context, throw: bool
) -> tuple[str, Any, ExceptionInfo | None, tuple[list[Any], dict[str, Any]] | None]:
    """One run: state, value or error, its traceback, and the arguments of the retry it asked for."""
    run = Run(task, request)
    run.enter(waits=not _denied())
    einfo = None
    again = None
    try:
        try:
            value: Any = asyncio.run(run.acall()) if _is_async(task) else run.call()
            state = states.SUCCESS
        except BaseException as exc:
            value, state = exc, ending_state(exc, State.FAILED)
            if not isinstance(exc, Exception) and state == states.FAILURE:
                raise
            if state == states.FAILURE:
                einfo = ExceptionInfo(exc)
            if isinstance(exc, Retry):
                again = exc.sig or (list(request.args), dict(request.kwargs))
        run.leave(state, value, einfo.traceback if einfo else None)
    finally:
        run.exit()
    if state == states.SUCCESS:
        for callback in request.callbacks or ():
            _signature(task, callback).apply_async((value,))
    elif state == states.FAILURE:
        for errback in request.errbacks or ():
            _call_errback(_signature(task, errback), request, value, einfo)
        if throw:
            raise value
    return state, value, einfo, again


def _call_errback(
    sig: Any, request: Context, exc: BaseException, einfo: ExceptionInfo | None
) -> None:
    """Run an error callback here too, as Celery does; one that is not known here is submitted.

    One that fails is logged and fails nothing else.
    """
    args: tuple[Any, ...] = (request.id,)
    if sig.subtask_type is None:
        if sig.task not in sig.app.tasks:
            sig.apply_async(args)
            return
        if takes_failure(sig.type.adapter.parameters, sig.args, sig.kwargs):
            args = (request, exc, einfo.traceback if einfo else "")
    try:
        result = sig.apply(args)
    except Exception:
        log.exception("error callback %s of task %s failed", sig.task, request.id)
        return
    if result.failed():
        log.error("error callback %s of task %s failed: %r", sig.task, request.id, result.result)


def _denied() -> bool:
    from taskmq.compat._state import task_join_will_block

    return task_join_will_block()


def _is_async(task: Task) -> bool:
    return inspect.iscoroutinefunction(task.run)


def _signature(task: Task, value: Any) -> Any:
    from taskmq.compat.canvas.signature import maybe_signature

    return maybe_signature(value, app=task.app)


def _store(task: Task, result: EagerResult) -> None:
    from taskmq.compat.app.updating import final_record

    if result.state in states.READY_STATES:
        record = final_record(task.app, result.id, result.state, result.result, task.name)
        task.app.engine.results.put([record])
