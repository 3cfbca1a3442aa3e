"""Error callbacks as Celery calls them: with the id of the failed task, or with what is known of its failure.

One that takes a single argument besides its own gets the task's id; one that takes more gets
`(request, exc, traceback)`: the request of the failed task, its exception, its traceback as text. Source:
Celery's "Linking (callbacks/errbacks)". Celery calls the latter inside the failing worker; here both are
messages, so they have a queue, a priority, retries and a result of their own, and the three are put together
from the store where they run. A bound task may be of either kind.
"""

from __future__ import annotations

import builtins
import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taskmq.compat.app.request import Context, request_of
from taskmq.compat.failures import rebuilt
from taskmq.message import DeadLetter, ResultRecord
from taskmq.policy.steps import ERRBACK
from taskmq.shape import Shape
from taskmq.states import State
from taskmq.submitting import UPSTREAM

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery
    from taskmq.message import Message

__all__ = ("ErrbackShape", "arguments_of", "takes_failure")

log = logging.getLogger("taskmq.compat")

_NEW_STYLE = 3


def takes_failure(shape: Shape, own: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a task takes `(request, exc, traceback)` in front of these arguments of its own."""
    try:
        shape.check((None,) * _NEW_STYLE + tuple(own), kwargs)
    except TypeError:
        return False
    return True


class ErrbackShape(Shape):
    """The parameters of a task where it is an error callback: its arguments come in front in either way."""

    def __init__(self, of: Shape) -> None:
        self._of = of

    def has(self, parameter: str) -> bool:
        return self._of.has(parameter)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._of.check(self._called_with(args, kwargs), kwargs)

    def key(self, rule: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        return self._of.key(rule, self._called_with(args, kwargs), kwargs)

    def _called_with(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        # An immutable signature has no place for what comes from before; it takes its own arguments.
        if args and args[0] is UPSTREAM and takes_failure(self._of, args[1:], kwargs):
            return (UPSTREAM,) * _NEW_STYLE + tuple(args[1:])
        return args


def arguments_of(
    app: Celery, shape: Shape, message: Message, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Sequence[Any]:
    """The arguments a task is called with for this message; other than `args` for an error callback only."""
    failed = message.headers.get(ERRBACK)
    if failed is None or not args or args[0] != failed:
        return args
    if not takes_failure(shape, args[1:], kwargs):
        return args
    return (*_failure_of(app, failed), *args[1:])


def _failure_of(app: Celery, task_id: str) -> tuple[Context, BaseException, str]:
    """The request, the exception and the traceback of a task that ended without success.

    The message of one that failed is a dead letter, stored in the transaction that submitted the callback; of
    one that expired or was revoked only its id and name are left.
    """
    letter = _letter(app, task_id)
    record = app.engine.results.get(task_id)
    if record is None or not record.state.final or record.state is State.SUCCEEDED:
        record = _record(task_id, letter)
    request = _request(app, record, letter)
    exc = rebuilt(app, record)
    return request, exc, record.traceback or f"{type(exc).__name__}: {exc}"


def _letter(app: Celery, task_id: str) -> DeadLetter | None:
    found = app.engine.transport.operators.find(task_id)
    return next((one.dead for one in found if one.dead is not None), None)


def _record(task_id: str, letter: DeadLetter | None) -> ResultRecord:
    """What stands for the result of a task that keeps none: the line its dead letter keeps."""
    name, _, text = (letter.error if letter else "").partition(": ")
    name = name or "Exception"
    failure = {
        "exc_type": name,
        "exc_module": builtins.__name__ if hasattr(builtins, name) else "",
        "exc_message": [text or f"task {task_id} failed"],
    }
    return ResultRecord(
        task_id=task_id,
        state=State.FAILED,
        body=json.dumps(failure).encode(),
        task=letter.message.task if letter else "",
    )


def _request(app: Celery, record: ResultRecord, letter: DeadLetter | None) -> Context:
    if letter is None:
        return Context(
            id=record.task_id,
            task=record.task or None,
            retries=record.retries,
            hostname=record.worker or None,
            parent_id=record.parent_id,
            called_directly=False,
        )
    args, kwargs = _arguments(app, letter.message)
    return request_of(
        letter.message,
        args,
        kwargs,
        app.scale,
        worker=record.worker,
        deliveries=letter.deliveries,
    )


def _arguments(app: Celery, message: Message) -> tuple[Any, Any]:
    try:
        args, kwargs, _ = app.engine.codec.decode_body(
            message.body,
            message.content_type,
            message.content_encoding,
            message.headers.get("compression"),
        )
    except Exception:
        # It may have failed for that very reason, and its error callback is told all the same.
        log.warning("the arguments of failed task %s cannot be read", message.task_id)
        return None, None
    return args, kwargs
