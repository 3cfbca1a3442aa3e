"""The exception a stored failure tells of, under the names Celery code catches."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taskmq import errors as engine
from taskmq.compat import exceptions as celery
from taskmq.result import rebuild_error

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery
    from taskmq.message import ResultRecord

__all__ = ("rebuilt",)

# What the engine itself ends a task with, and what Celery calls it.
_CELERYS: dict[type[BaseException], type[Exception]] = {
    engine.WorkerLost: celery.WorkerLostError,
    engine.TimeLimitExceeded: celery.TimeLimitExceeded,
    engine.SoftTimeLimitExceeded: celery.SoftTimeLimitExceeded,
    engine.TaskRevoked: celery.TaskRevokedError,
    engine.TaskCancelled: celery.TaskRevokedError,
    engine.TaskExpired: celery.TaskRevokedError,
    engine.NotRegistered: celery.NotRegistered,
    engine.MaxRetriesExceeded: celery.MaxRetriesExceededError,
    engine.UpstreamFailed: celery.ChordError,
}


def rebuilt(app: Celery, record: ResultRecord) -> BaseException:
    """The exception of a task that ended without success.

    Rebuilt as its own class where the engine trusts the module (`taskmq.result.rebuild_error`); else as a
    class of that name made here, as Celery does, so that `type(exc).__name__` and `str(exc)` still say what
    happened.
    """
    error = rebuild_error(app.engine, _under_our_names(record))
    kind = _CELERYS.get(type(error), type(error))
    if kind in celery.BILLIARDS:
        kind = celery.caught_as_billiard(kind)
    if kind is not type(error):
        return kind(*error.args)
    if isinstance(error, engine.RemoteError) and error.exc_type:
        return _made(error)
    return error


def _under_our_names(record: ResultRecord) -> ResultRecord:
    """The record with the classes that Celery and billiard have named as they are here."""
    if record.body is None or b".exceptions" not in record.body:
        return record
    try:
        failure = json.loads(record.body)
        if failure["exc_module"] not in celery.WIRE_MODULES:
            return record
    except (ValueError, TypeError, KeyError, RecursionError):
        return record
    failure["exc_module"] = celery.__name__
    return replace(record, body=json.dumps(failure).encode())


def _made(error: engine.RemoteError) -> BaseException:
    args: Any = error.exc_args
    cls = type(
        error.exc_type.rpartition(".")[2],
        (_Remote,),
        {"__module__": error.exc_module or "builtins", "__qualname__": error.exc_type},
    )
    made: BaseException = cls(*args) if isinstance(args, (list, tuple)) else cls(args)
    return made


class _Remote(engine.RemoteError):
    """An exception whose class is not at hand here; `args` are those it was raised with."""

    def __init__(self, *args: Any) -> None:
        super().__init__("")
        self.args = args

    def __str__(self) -> str:
        return str(self.args[0]) if len(self.args) == 1 else str(self.args)
