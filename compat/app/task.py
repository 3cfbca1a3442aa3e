"""`Task`: the class behind every Celery task, for subclassing and for `self`.

Options of the decorator become attributes, and so do options Celery does not know: projects keep their
own there (`once=`, `verbose_name=`). One instance per app and process; state on `self` lives on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

from taskmq.compat._state import _task_stack, get_current_app
from taskmq.compat.app.bound import BoundToApp
from taskmq.compat.app.request import Context
from taskmq.compat.exceptions import MaxRetriesExceededError, Retry
from taskmq.compat.utils.threads import LocalStack

if TYPE_CHECKING:
    from taskmq.compat._einfo import ExceptionInfo
    from taskmq.compat.app.adapter import AdapterTask
    from taskmq.compat.canvas.signature import Signature
    from taskmq.compat.result import AsyncResult, EagerResult

__all__ = ("Context", "Task")


class _OperationalError:
    """kombu's class as an attribute of tasks and of their classes, loaded at the first look."""

    def __get__(self, instance: Any, owner: Any) -> type[Exception]:
        from kombu.exceptions import OperationalError

        return OperationalError


log = logging.getLogger("taskmq.compat.task")

#: Attributes that the options of a call are filled up from. The priority is not among them: the engine
#: knows the task's, and an inherited one beats it.
_EXEC_OPTIONS = (
    "queue",
    "routing_key",
    "exchange",
    "expires",
    "serializer",
    "time_limit",
    "soft_time_limit",
    "delivery_mode",
    "compression",
    "concurrency_key",
    "concurrency_limit",
    "max_deliveries",
)


class Task(BoundToApp):
    """Base class of all tasks.

    `run` is the body; `before_start`, `on_success`, `on_failure`, `on_retry` and `after_return` are for
    subclasses to fill. Attributes are Celery's task options.
    """

    name: Any = None
    typing: Any = None
    max_retries: int | None = 3
    default_retry_delay: float = 3 * 60
    rate_limit: Any = None
    ignore_result: Any = None
    trail = True
    send_events = True
    store_errors_even_if_ignored: Any = None
    store_eager_result: Any = None
    serializer: Any = None
    time_limit: Any = None
    soft_time_limit: Any = None
    track_started: Any = None
    acks_late: Any = None
    acks_on_failure_or_timeout: Any = None
    reject_on_worker_lost: Any = None
    throws: Any = ()
    expires: Any = None
    priority: Any = None
    queue: Any = None
    routing_key: Any = None
    exchange: Any = None
    delivery_mode: Any = None
    compression: Any = None
    concurrency_key: Any = None
    concurrency_limit: Any = None
    max_deliveries: Any = None
    resultrepr_maxsize = 1024
    abstract = True
    Request: Any = None
    Strategy: Any = None
    MaxRetriesExceededError: ClassVar[Any] = MaxRetriesExceededError
    OperationalError: ClassVar[Any] = _OperationalError()

    _stack: LocalStack | None = None
    _adapter: AdapterTask | None = None

    @property
    def adapter(self) -> AdapterTask:
        """The native task that runs this one in a worker."""
        from taskmq.compat.app.adapter import AdapterTask

        found = self.app.engine.registry[self.name]
        assert isinstance(found, AdapterTask)
        return found

    @property
    def backend(self) -> Any:
        """The result store of the app."""
        return self.app.backend

    @property
    def __name__(self) -> str:
        name: str = type.__getattribute__(type(self), "__name__")
        return name

    def __repr__(self) -> str:
        return f"<@task: {self.name} of {self.app.main or 'no name'}>"

    def __reduce__(self) -> Any:
        # By name: what a task is comes from the project's modules, never from bytes.
        return _task_by_name, (self.name,)

    # -- the body ---------------------------------------------------------------------------------

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """What the task does."""
        raise NotImplementedError("Tasks must define the run method.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the body here and now, without a message."""
        request = self.request_stack.top
        if request is not None and not request.called_directly and not request._protected:
            # A subclass's __call__ called super(): this is the body of the run that is going on.
            request._protected = 1
            return self.run(*args, **kwargs)
        _task_stack.push(self)
        self.push_request(args=args, kwargs=kwargs)
        try:
            return self.run(*args, **kwargs)
        finally:
            self.pop_request()
            _task_stack.pop()

    def _body(self) -> Any:
        """What a run calls: `__call__` where a subclass has its own, else `run`."""
        return self.run if type(self).__call__ is Task.__call__ else self

    @property
    def request_stack(self) -> LocalStack:
        """The requests of this task that are being run here, innermost last."""
        if self._stack is None:
            self._stack = LocalStack(f"taskmq.compat.request:{self.name}")
        return self._stack

    @property
    def request(self) -> Context:
        """The message this task is running for; one with `called_directly` outside of a run."""
        found = self.request_stack.top
        if found is None:
            found = self.__dict__.setdefault("_default_request", Context())
        return found  # type: ignore[no-any-return]

    def push_request(self, *args: Any, **kwargs: Any) -> None:
        """Make a request the current one; for tests."""
        self.request_stack.push(Context(*args, **kwargs))

    def pop_request(self) -> None:
        """The request before it is the current one again."""
        self.request_stack.pop()

    # -- calling ----------------------------------------------------------------------------------

    def delay(self, *args: Any, **kwargs: Any) -> AsyncResult:
        """Submit with these arguments."""
        return self.apply_async(args, kwargs)

    def apply_async(
        self,
        args: Any = None,
        kwargs: Any = None,
        task_id: str | None = None,
        producer: Any = None,
        link: Any = None,
        link_error: Any = None,
        shadow: str | None = None,
        **options: Any,
    ) -> AsyncResult:
        """Submit with options, which win over the task's and those over `task_routes`.

        `priority` -9..9, larger = more urgent (see `task_priority_scale`); `countdown` in seconds; `eta` a
        datetime, a naive one in the app's time zone; `expires` in seconds or a datetime. Under
        `task_always_eager` the task is run here instead. Raises as `app.send_task` does.
        """
        from taskmq.compat.app.eager import apply_eagerly
        from taskmq.compat.app.publish import publish

        app = self.app
        given = {
            **self._get_exec_options(),
            **{name: value for name, value in options.items() if value is not None},
        }
        given.update(task_id=task_id, link=link, link_error=link_error)
        given["shadow"] = shadow or self.shadow_name(args, kwargs, options)
        if app.conf.task_always_eager:
            return apply_eagerly(self, args, kwargs, given)
        return publish(app, self.name, args, kwargs, task=self, options=given)

    def _get_exec_options(self) -> dict[str, Any]:
        found = {
            name: value for name in _EXEC_OPTIONS if (value := getattr(self, name)) is not None
        }
        # Every task has one since it was bound; only another one than the app's has to be said.
        if found.get("serializer") == self.app.engine.config.serializer:
            del found["serializer"]
        return found

    def shadow_name(self, args: Any, kwargs: Any, options: Any) -> str | None:
        """Another name for this call in logs and events; for subclasses."""
        return None

    def apply(
        self,
        args: Any = None,
        kwargs: Any = None,
        link: Any = None,
        link_error: Any = None,
        task_id: str | None = None,
        retries: int | None = None,
        throw: bool | None = None,
        logfile: Any = None,
        loglevel: Any = None,
        headers: Any = None,
        **options: Any,
    ) -> EagerResult:
        """Run here and now as a worker would, retries included; return its `EagerResult`.

        With `throw` (default `task_eager_propagates`) the task's error is raised.
        """
        from taskmq.compat.app.eager import apply

        return apply(
            self,
            args,
            kwargs,
            link=link,
            link_error=link_error,
            task_id=task_id,
            retries=retries or 0,
            throw=throw,
            headers=headers,
            loglevel=loglevel,
            logfile=logfile,
            options=options,
        )

    def retry(
        self,
        args: Any = None,
        kwargs: Any = None,
        exc: BaseException | None = None,
        throw: bool = True,
        eta: Any = None,
        countdown: float | None = None,
        max_retries: int | None = None,
        **options: Any,
    ) -> Retry:
        """End this run and run the task again: raises `Retry`, so `raise self.retry()` says it plainly.

        After `countdown` seconds, at `eta`, else after `default_retry_delay`; with other arguments,
        `priority=` or `queue=` if given. See `retrying.retry` for the end of retries.
        """
        from taskmq.compat.app.retrying import retry

        return retry(
            self,
            args=args,
            kwargs=kwargs,
            exc=exc,
            throw=throw,
            eta=eta,
            countdown=countdown,
            max_retries=max_retries,
            options=options,
        )

    # -- signatures -------------------------------------------------------------------------------

    def signature(self, args: Any = None, *starargs: Any, **starkwargs: Any) -> Signature:
        """A call to be made later: `task.signature((2, 2), countdown=10)`."""
        from taskmq.compat.canvas.signature import Signature

        starkwargs.setdefault("app", self.app)
        return Signature(self, args, *starargs, **starkwargs)

    subtask = signature

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """A call with these arguments, to be made later."""
        return self.signature(args, kwargs)

    def si(self, *args: Any, **kwargs: Any) -> Signature:
        """As `s`, but it takes exactly these arguments whatever comes before it."""
        return self.signature(args, kwargs, immutable=True)

    # -- results and state ------------------------------------------------------------------------

    def AsyncResult(self, task_id: str, **kwargs: Any) -> AsyncResult:  # noqa: N802 - Celery's name
        """The result of a call of this task, by id."""
        return self.app.AsyncResult(task_id, task_name=self.name, **kwargs)

    def update_state(
        self, task_id: str | None = None, state: str | None = None, meta: Any = None, **kwargs: Any
    ) -> None:
        """Store a state of one's own with a JSON value: `self.update_state(state="PROGRESS", meta={…})`.

        A running task's own state is replaced when the task ends; one of the final states is kept only if
        the task then raises `Ignore`.
        """
        from taskmq.compat.app.updating import update_state

        update_state(self, task_id or self.request.id, state, meta)

    def add_trail(self, result: Any) -> Any:
        """Note a result as a child of the run that is going on."""
        if self.trail:
            self.request.children.append(result)
            if self.request._engine is not None:
                for task_id in result.own_ids():
                    self.request._engine.note_child(task_id)
        return result

    # -- for subclasses ---------------------------------------------------------------------------

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        """Called before the body. What it raises fails the task."""

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        """Called when the body returned."""

    def on_retry(
        self, exc: BaseException, task_id: str, args: Any, kwargs: Any, einfo: ExceptionInfo
    ) -> None:
        """Called when the task will be run again."""

    def on_failure(
        self, exc: BaseException, task_id: str, args: Any, kwargs: Any, einfo: ExceptionInfo
    ) -> None:
        """Called when the body failed."""

    def after_return(
        self, status: str, retval: Any, task_id: str, args: Any, kwargs: Any, einfo: Any
    ) -> None:
        """Called last, after success and after failure."""

    def __getattr__(self, name: str) -> Any:
        from taskmq.compat._missing import missing_attribute

        # Only for names that are not there: Celery's that come later say so.
        raise missing_attribute("task", name, self)


def _task_by_name(name: str) -> Task:
    found: Task = get_current_app().tasks[name]
    return found
