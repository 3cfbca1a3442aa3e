"""The native task that a worker runs in a Celery task's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from taskmq import errors as engine
from taskmq.compat import states
from taskmq.compat._state import _joins, _task_stack
from taskmq.compat.app.engine import task_options
from taskmq.compat.app.errbacks import ErrbackShape, arguments_of
from taskmq.compat.app.request import request_of
from taskmq.compat.app.retrying import by_hand
from taskmq.compat.app.trace import Run, ending_state
from taskmq.compat.app.updating import keep_own_state
from taskmq.compat.exceptions import (
    Ignore,
    Reject,
    Retry,
    SoftTimeLimitExceeded,
    caught_as_billiard,
)
from taskmq.hooks import RunEvent
from taskmq.shape import Shape
from taskmq.task import Task as EngineTask
from taskmq.task import TaskOptions

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.compat.app.task import Task
    from taskmq.context import Context as EngineContext

__all__ = ("AdapterTask", "leave_run")


class AdapterTask(EngineTask[..., Any]):
    """Runs a Celery task: request, hooks and signals around the body, Celery's exceptions translated."""

    def __init__(self, app: App, task: Task) -> None:
        self.task = task
        super().__init__(app, task.run, task.name, TaskOptions(**task_options(task, task.app.conf)))
        #: The parameters as they are, whatever is checked at a call.
        self.parameters = self.shape
        if not task.typing:
            # typing=False: a wrong call fails where it runs, as the project asked.
            self.shape = _Unchecked(task.run, bind=False, name=task.name)

    def as_errback(self) -> AdapterTask:
        """The same task for a call that is an error callback: other arguments come in front of its own."""
        task: AdapterTask = object.__new__(type(self))
        vars(task).update(vars(self))
        if self.shape is self.parameters:
            task.shape = ErrbackShape(self.parameters)
        return task

    @property
    def soft_limit_error(self) -> type[BaseException]:
        """What the soft time limit raises inside the task, caught under Celery's and billiard's name."""
        return caught_as_billiard(SoftTimeLimitExceeded)

    def invoke(self, context: EngineContext, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the body for a delivery. `leave_run` ends what this begins."""
        self._drop_leftovers()
        request = request_of(
            context.message,
            list(args),
            dict(kwargs),
            self.task.app.scale,
            worker=context.worker,
            deliveries=context.deliveries,
        )
        request._engine = context
        called_with = arguments_of(self.task.app, self.parameters, context.message, args, kwargs)
        run = Run(self.task, request, called_with)
        context.celery_run = run  # type: ignore[attr-defined]
        run.enter()
        if self.is_async:
            return self._acall(run)
        try:
            return run.call()
        except BaseException as exc:
            self._raise(exc)

    async def _acall(self, run: Run) -> Any:
        try:
            return await run.acall()
        except BaseException as exc:
            self._raise(exc)

    def _raise(self, exc: BaseException) -> NoReturn:
        meant = translated(exc, self.task)
        if isinstance(exc, Ignore):
            keep_own_state(self.task)
        if meant is exc:
            raise exc
        raise meant from exc

    def _drop_leftovers(self) -> None:
        # A run that a time limit cut off between body and hooks never left.
        while _task_stack.top is not None:
            _task_stack.pop().request_stack.pop()
            _joins.pop()


def leave_run(event: RunEvent) -> None:
    """Receiver of the engine's `after_run`: the run's own hooks, and the end of its request."""
    run = getattr(event.context, "celery_run", None)
    if not isinstance(run, Run):
        return
    raised = run.raised if run.raised is not None else event.exception
    state = ending_state(raised, event.state)
    try:
        run.leave(state, event.value if state == states.SUCCESS else raised, event.traceback)
    finally:
        run.exit()


def translated(exc: BaseException, task: Task) -> BaseException:
    """What the engine understands of what a Celery task raised."""
    if isinstance(exc, Retry):
        plan = exc.plan or by_hand(exc, task)
        if plan.sent:
            return engine.Ignore("retried by a message of its own")
        return engine.Retry(
            str(exc),
            delay=plan.delay,
            priority=plan.priority,
            body=plan.body,
            cause=exc.exc or exc,
        )
    if isinstance(exc, Reject):
        return engine.Reject(str(exc.reason or "rejected by the task"), requeue=exc.requeue)
    if isinstance(exc, Ignore):
        return engine.Ignore("ignored by the task")
    return exc


class _Unchecked(Shape):
    """Parameters that every call fits."""

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        return None
