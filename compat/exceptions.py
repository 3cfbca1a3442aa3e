"""Celery's exceptions under Celery's names: what user code catches is what it gets.

    CeleryError
    ├── ImproperlyConfigured · SecurityError
    ├── TaskPredicate            raised by task code to steer its own ending
    │   └── Retry · Ignore · Reject
    └── TaskError
        ├── NotRegistered · QueueNotFound     (also KeyError)
        ├── AlreadyRegistered · IncompleteStream · InvalidTaskError
        ├── MaxRetriesExceededError · TimeoutError · TaskRevokedError · ChordError
    BackendError ── BackendGetMetaError · BackendStoreError
    SoftTimeLimitExceeded · TimeLimitExceeded · WorkerLostError · Terminated
    CeleryWarning ── AlwaysEagerIgnored · DuplicateNodenameWarning · FixupWarning · NotConfigured · …
    WorkerShutdown · WorkerTerminate          (SystemExit)

Source: Celery's `celery.exceptions` reference. Celery takes the four time-limit and worker-loss
classes from billiard; here they are our own, and `caught_as_billiard` gives the instance that is also
billiard's for code that catches them under that name. Stored failures name all of them as Celery does
(`celery.exceptions`, `billiard.exceptions`), so that either fleet reads the other's.
"""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from taskmq import errors as engine
from taskmq.codec.failures import WIRE_MODULE

if TYPE_CHECKING:
    from kombu.exceptions import OperationalError as OperationalError

__all__ = (
    "CeleryError",
    "CeleryWarning",
    "TaskPredicate",
    "TaskError",
    "Retry",
    "RetryTaskError",
    "Ignore",
    "Reject",
    "ImproperlyConfigured",
    "SecurityError",
    "SecurityWarning",
    "QueueNotFound",
    "IncompleteStream",
    "NotRegistered",
    "AlreadyRegistered",
    "TimeoutError",
    "MaxRetriesExceededError",
    "TaskRevokedError",
    "InvalidTaskError",
    "ChordError",
    "BackendError",
    "BackendGetMetaError",
    "BackendStoreError",
    "SoftTimeLimitExceeded",
    "TimeLimitExceeded",
    "WorkerLostError",
    "Terminated",
    "OperationalError",
    "AlwaysEagerIgnored",
    "DuplicateNodenameWarning",
    "DuplicateTaskNameWarning",
    "FixupWarning",
    "NotConfigured",
    "CDeprecationWarning",
    "CPendingDeprecationWarning",
    "WorkerShutdown",
    "WorkerTerminate",
    "SystemTerminate",
)


class CeleryWarning(UserWarning):
    """Root of the warnings."""


class AlwaysEagerIgnored(CeleryWarning):
    """`send_task` was called under `task_always_eager`: it sends all the same."""


class DuplicateNodenameWarning(CeleryWarning):
    """Two workers answer to one name."""


class DuplicateTaskNameWarning(CeleryWarning):
    """Two different functions were declared as tasks under one name; the first one stays."""


class FixupWarning(CeleryWarning):
    """An integration could not do its part."""


class NotConfigured(CeleryWarning):
    """The configuration module of an app could not be found."""


class SecurityWarning(CeleryWarning):
    """A setting weakens the security of the workers."""


class CDeprecationWarning(DeprecationWarning):
    """A name that is going away."""


class CPendingDeprecationWarning(PendingDeprecationWarning):
    """A name that will go away."""


class CeleryError(Exception):
    """Root of the errors."""


class ImproperlyConfigured(CeleryError, engine.ConfigError):
    """A setting, an option or an argument is not one that is accepted."""


class SecurityError(CeleryError):
    """Something untrusted was refused."""


class TaskPredicate(CeleryError):
    """Raised by task code to say how this run ends; not a failure."""


class RetryPlan(NamedTuple):
    """What becomes of a message that is retried: seconds to wait, and what changes.

    None keeps the priority, or the arguments. `sent` says that a copy was submitted already, because
    more changes than a retry in place can carry (another queue, say).
    """

    delay: float
    priority: int | None = None
    body: bytes | None = None
    sent: bool = False


class Retry(TaskPredicate):
    """The task will run again.

    Raised by `self.retry()`. `exc` is the error that caused it (an exception, or text), `when` the
    seconds until, or the time of, the next run; `is_eager` and `sig` say how an eager run goes on.
    """

    def __init__(
        self,
        message: str | None = None,
        exc: BaseException | str | None = None,
        when: float | datetime | None = None,
        is_eager: bool = False,
        sig: Any = None,
        **kwargs: Any,
    ) -> None:
        self.message = message
        self.exc: BaseException | None
        if isinstance(exc, str):
            self.exc, self.excs = None, exc
        else:
            self.exc, self.excs = exc, "" if exc is None else _printable(exc)
        self.when = when
        self.is_eager = is_eager
        self.sig = sig
        #: How the engine carries it out; set by `self.retry()`.
        self.plan: RetryPlan | None = None
        super().__init__(message, exc, when, **kwargs)

    def humanize(self) -> str:
        """When the next run is due, in words."""
        if isinstance(self.when, (int, float)):
            return f"in {float(self.when)}s"
        return f"at {self.when}"

    def __str__(self) -> str:
        if self.message:
            return self.message
        if self.excs:
            return f"Retry {self.humanize()}: {self.excs}"
        return f"Retry {self.humanize()}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.exc, self.when)


#: The name before Celery 3.1; some projects still import it.
RetryTaskError = Retry


class Ignore(TaskPredicate):
    """Finish the message and leave the state of the task to the task."""


class Reject(TaskPredicate):
    """Put the message back (`requeue=True`) or bury it with a reason. Both need no acks_late here."""

    def __init__(self, reason: Any = None, requeue: bool = False) -> None:
        self.reason = reason
        self.requeue = requeue
        super().__init__(reason, requeue)

    def __repr__(self) -> str:
        return f"reject requeue={self.requeue}: {self.reason}"


class TaskError(CeleryError):
    """Something is wrong with one task."""


class QueueNotFound(KeyError, TaskError):
    """A queue that `task_queues` does not declare while `task_create_missing_queues` is off."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class IncompleteStream(TaskError):
    """The end of a stream of results was never seen."""


class NotRegistered(KeyError, TaskError):
    """No task of this name is registered."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __repr__(self) -> str:
        return f"Task of kind {self} never registered, please make sure it's imported."


class AlreadyRegistered(TaskError):
    """The task was registered before."""


class TimeoutError(TaskError):  # noqa: A001 - Celery's name
    """`get(timeout=)` waited its time and the task had not ended."""


class MaxRetriesExceededError(TaskError):
    """A retry was asked for and none is left. `task_args` and `task_kwargs` are those of the run."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.task_args = kwargs.pop("task_args", [])
        self.task_kwargs = kwargs.pop("task_kwargs", {})
        super().__init__(*args, **kwargs)


class TaskRevokedError(TaskError):
    """The task was revoked, or expired before it started."""


class InvalidTaskError(TaskError):
    """A message that is no task call."""


class ChordError(TaskError):
    """A member of the chord's header did not succeed, so its body did not run."""


class BackendError(Exception):
    """The result store failed."""


class BackendGetMetaError(BackendError):
    """The state of a task could not be read."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.task_id = kwargs.get("task_id", "")
        super().__init__(*args)


class BackendStoreError(BackendError):
    """The state of a task could not be written."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.task_id = kwargs.get("task_id", "")
        self.state = kwargs.get("state", "")
        super().__init__(*args)


class SoftTimeLimitExceeded(engine.SoftTimeLimitExceeded):
    """Raised inside a task when its soft time limit passes."""


class TimeLimitExceeded(engine.TimeLimitExceeded):
    """The task ran longer than its hard time limit and was stopped."""


class WorkerLostError(engine.WorkerLost):
    """The process that ran the task ended before the task did."""


class Terminated(engine.TaskRevoked):
    """The task was stopped while it ran, by a revoke with `terminate=True`."""


class WorkerTerminate(SystemExit):
    """Stop the worker now."""


#: The older name of `WorkerTerminate`.
SystemTerminate = WorkerTerminate


class WorkerShutdown(SystemExit):
    """Stop the worker after the running tasks."""


#: Where Celery has them, and stored failures say they are.
WIRE_MODULES = ("celery.exceptions", "billiard.exceptions")
BILLIARDS = (SoftTimeLimitExceeded, TimeLimitExceeded, WorkerLostError, Terminated)

for _cls in [globals()[_name] for _name in __all__ if _name in globals()]:
    if _cls.__module__ == __name__:
        setattr(_cls, WIRE_MODULE, WIRE_MODULES[_cls in BILLIARDS])


def caught_as_billiard(cls: type[Exception]) -> type[Exception]:
    """`cls`, or a subclass of it that billiard's class of the same name also catches.

    Projects write `from billiard.exceptions import SoftTimeLimitExceeded` (Celery re-exports that
    class). Only where billiard is loaded can anyone have such a name, so it is never imported here.
    """
    module = sys.modules.get("billiard.exceptions")
    theirs = getattr(module, cls.__name__, None)
    if not isinstance(theirs, type) or not issubclass(theirs, Exception):
        return cls
    for known in cls.__subclasses__():
        if theirs in known.__bases__:
            return known
    own = {"__module__": cls.__module__, "__doc__": cls.__doc__, WIRE_MODULE: WIRE_MODULES[1]}
    return type(cls.__name__, (cls, theirs), own)


def _printable(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # a repr of user code; the message must come out all the same
        return f"<unprintable {type(value).__name__}>"


def __getattr__(name: str) -> Any:
    """kombu's own class, loaded by whoever asks for it: kombu brings its drivers (a fifth of the import)."""
    if name == "OperationalError":
        from kombu.exceptions import OperationalError

        globals()[name] = OperationalError
        return OperationalError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
