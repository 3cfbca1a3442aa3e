"""Every error TaskMQ raises, in one tree at most three deep.

    TaskMQError
    ├── ConfigError                 a setting, a task option or an argument is wrong
    │   └── PriorityError           (also ValueError) a priority at a call
    ├── TransportError              messages could not be moved
    │   ├── TransportUnavailable    try again later (retryable)
    │   ├── TransportFull           no room on the device (retryable)
    │   ├── TransportMoved          the database file was replaced under us (retryable)
    │   ├── TransportCorrupt        the store is damaged; nothing was changed
    │   └── SubmitUnknown           it may or may not be stored; submitting again is safe (retryable)
    ├── MessageError                this one message cannot be used
    │   ├── EncodeError · DecodeError · ContentRefused · TooLarge
    │   └── NotRegistered           (also KeyError) no task of that name here
    ├── TaskError                   how a task ended
    │   ├── RemoteError             it raised something that cannot be rebuilt here
    │   ├── WorkerLost · TimeLimitExceeded · SoftTimeLimitExceeded
    │   ├── MaxRetriesExceeded · TaskRevoked · TaskExpired · TaskCancelled
    │   └── UpstreamFailed          a step it depended on did not succeed
    ├── ResultError
    │   ├── ResultTimeout           (also TimeoutError) get() waited long enough
    │   └── ResultUnavailable       the result store did not answer (retryable)
    └── TaskSignal                  raised by task code to steer its own ending, no failure
        └── Retry · Reject · Ignore

`retryable` says whether the same call may succeed later without a change by the caller.
A message names the value, what is accepted, and where; `nearest()` adds the likely name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import fields
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class TaskMQError(Exception):
    """Root of all errors raised by TaskMQ."""

    retryable: ClassVar[bool] = False


class ConfigError(TaskMQError):
    """A setting, an option or an argument is not one TaskMQ accepts (P1)."""


class PriorityError(ConfigError, ValueError):
    """A priority given at a call is not an int in -9..9 (P1). Nothing was submitted."""


class TransportError(TaskMQError):
    """A transport could not do what was asked."""


class TransportUnavailable(TransportError):
    """The store or broker cannot be reached or is locked by somebody else. Nothing was stored."""

    retryable = True


class TransportFull(TransportError):
    """The device or the store has no room. Nothing was stored."""

    retryable = True


class TransportMoved(TransportError):
    """The database file was deleted, moved or replaced while it was open. Nothing was stored."""

    retryable = True


class TransportCorrupt(TransportError):
    """The store is damaged or is not a TaskMQ store. It was neither changed nor recreated."""


class SubmitUnknown(TransportError):
    """The outcome of a submit is not known; submitting the same message again is safe."""

    retryable = True


class MessageError(TaskMQError):
    """One message cannot be used; the others are not affected."""


class EncodeError(MessageError):
    """Arguments or a result cannot be written in the configured content type."""


class DecodeError(MessageError):
    """A body or header is not what its content type or the protocol says."""


class ContentRefused(MessageError):
    """The content type of a message is not in `accept_content`."""


class TooLarge(MessageError):
    """A body is larger than `max_body`."""


class NotRegistered(MessageError, KeyError):
    """No task of this name is registered in this process."""

    def __str__(self) -> str:
        # KeyError would print the repr of a sentence.
        return str(self.args[0]) if self.args else ""


class TaskError(TaskMQError):
    """How a task ended when it did not succeed."""


class RemoteError(TaskError):
    """A task raised an exception whose class cannot be rebuilt here.

    Carries `exc_type`, `exc_module` and `exc_args` as text and JSON values.
    """

    def __init__(
        self, message: str, *, exc_type: str = "", exc_module: str = "", exc_args: Any = ()
    ):
        super().__init__(message)
        self.exc_type = exc_type
        self.exc_module = exc_module
        self.exc_args = exc_args


class WorkerLost(TaskError):
    """The process that ran the task ended before the task did."""


class TimeLimitExceeded(TaskError):
    """The task ran longer than its hard time limit and was stopped."""


class SoftTimeLimitExceeded(TaskError):
    """Raised inside a task when its soft time limit passes."""


class MaxRetriesExceeded(TaskError):
    """A retry was asked for and none is left."""


class TaskRevoked(TaskError):
    """The task was revoked."""


class TaskExpired(TaskError):
    """The task was not started before its expiry."""


class TaskCancelled(TaskError):
    """Raised by `ctx.check_cancelled()` when this run should stop (P19)."""


class UpstreamFailed(TaskError):
    """A step this one depended on failed, expired or was revoked, so it never ran."""


class ResultError(TaskMQError):
    """A result could not be had."""


class ResultTimeout(ResultError, TimeoutError):
    """`get(timeout=)` waited its time and the task had not ended."""


class ResultUnavailable(ResultError):
    """The result store did not answer."""

    retryable = True


class TaskSignal(TaskMQError):
    """Raised by task code to say how this run ends; not a failure."""


# A hundred years; later moments are beyond what a calendar can show.
_LONGEST_RETRY_DELAY = 3_155_760_000.0


class Retry(TaskSignal):
    """Run again after `delay` seconds, optionally at another priority or with another body.

    `delay` is a number of seconds or a timedelta, from 0 to a hundred years; `body` is an encoded body.
    Raises `ConfigError` and `PriorityError` for anything else: the run then fails and says why.
    """

    def __init__(
        self,
        message: str = "retry",
        *,
        delay: float | timedelta = 0.0,
        priority: int | None = None,
        body: bytes | None = None,
        cause: BaseException | None = None,
    ):
        super().__init__(message)
        self.delay, self.priority, self.body = check_retry(delay, priority, body)
        self.cause = cause


def check_retry(delay: Any, priority: Any, body: Any) -> tuple[float, int | None, bytes | None]:
    """The values of a `Retry` as they are stored. Raises `ConfigError` and `PriorityError`."""
    # Not at the top: `priority` raises errors of this module.
    from taskmq.priority import check_priority

    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not 0 <= seconds <= _LONGEST_RETRY_DELAY
    ):
        raise ConfigError(
            f"Retry(delay): seconds from 0 to a hundred years, or a timedelta, got {delay!r:.100}"
        )
    if priority is not None:
        priority = check_priority(priority, "Retry(priority)")
    if body is not None and not isinstance(body, bytes):
        raise ConfigError(f"Retry(body): an encoded body as bytes, got {type(body).__name__}")
    return float(seconds), priority, body


class Reject(TaskSignal):
    """Do not finish this message: put it back (`requeue`) or bury it with a reason."""

    def __init__(self, reason: str = "rejected by the task", *, requeue: bool = False):
        super().__init__(reason)
        self.reason = reason
        self.requeue = requeue


class Ignore(TaskSignal):
    """Finish the message and leave its result as it is."""


def nearest(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the closest known name, or an empty string."""
    # Imported here: only whoever misspelt something needs it.
    import difflib

    found = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f" Did you mean {found[0]!r}?" if found else ""


def known_keywords(cls: type[T]) -> type[T]:
    """For dataclasses users write down: an unknown keyword is a `ConfigError` that names the likely one.

    A plain dataclass would raise a `TypeError` that speaks of `__init__`.
    """
    original: Any = cls.__init__
    names = tuple(f.name for f in fields(cls))  # type: ignore[arg-type]

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **keywords: Any) -> None:  # noqa: N807
        for name in keywords:
            if name not in names:
                raise ConfigError(
                    f"{cls.__name__}: unknown setting {name!r}.{nearest(name, names)}"
                )
        original(self, *args, **keywords)

    cls.__init__ = __init__  # type: ignore[method-assign]
    return cls
