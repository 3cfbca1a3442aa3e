"""One run of a Celery task: its request, its hooks and signals, and what its exceptions mean.

    enter  → task_prerun → before_start → body
    leave  → on_success | on_failure | on_retry → task_success | task_failure | task_retry
             → after_return → task_postrun

A worker calls `enter` and the body through the engine's task and `leave` from the engine's `after_run`
hook, once the value could be encoded; an eager run calls them itself. The hooks run in the process of
the task. Unlike Celery's they run just before the result is stored, in the same settle.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from taskmq import errors as engine
from taskmq.compat import signals, states
from taskmq.compat._einfo import ExceptionInfo
from taskmq.compat._state import _joins, _task_stack
from taskmq.compat.exceptions import Ignore, Reject, Retry
from taskmq.states import State

if TYPE_CHECKING:
    from taskmq.compat.app.request import Context
    from taskmq.compat.app.task import Task

__all__ = ("Run",)

log = logging.getLogger("taskmq.compat.trace")

# Celery leaves after_return out for runs that did not end the task.
_UNFINISHED = frozenset({states.IGNORED, states.RETRY, states.REJECTED})


class Run:
    """A task and the request it runs for. `enter`, then `call` or `acall`, then `leave`.

    `args` are what the body is called with where that is not what the message holds.
    """

    def __init__(self, task: Task, request: Context, args: Sequence[Any] | None = None) -> None:
        self.task = task
        self.request = request
        self.args = request.args if args is None else args
        #: What the body raised, as the task's own code sees it.
        self.raised: BaseException | None = None

    @property
    def id(self) -> str:
        return self.request.id or ""

    def enter(self, *, waits: bool = False) -> None:
        """Make this the current task; `waits` says that it may wait for other results."""
        _task_stack.push(self.task)
        self.task.request_stack.push(self.request)
        _joins.push(not waits)

    def exit(self) -> None:
        """The task before this one is the current one again."""
        _joins.pop()
        self.task.request_stack.pop()
        _task_stack.pop()

    def _begin(self) -> tuple[list[Any], dict[str, Any], Any]:
        args, kwargs = list(self.args or ()), dict(self.request.kwargs or {})
        if signals.task_prerun:
            signals.task_prerun.send(
                sender=self.task, task_id=self.id, task=self.task, args=args, kwargs=kwargs
            )
        self.task.before_start(self.id, args, kwargs)
        return args, kwargs, self.task._body()

    def call(self) -> Any:
        """Run the body: its value, or what it raised."""
        try:
            args, kwargs, body = self._begin()
            value = body(*args, **kwargs)
        except BaseException as exc:
            self.raised = exc
            raise
        return self._returned(value)

    async def acall(self) -> Any:
        """Run the body of an `async def`."""
        try:
            args, kwargs, body = self._begin()
            value = await body(*args, **kwargs)
        except BaseException as exc:
            self.raised = exc
            raise
        return self._returned(value)

    def _returned(self, value: Any) -> Any:
        pending = self.request._pending_retry
        if pending is not None:
            # retry(throw=False): the body went on to its end, and now the retry it asked for happens.
            self.raised = pending
            raise pending
        return value

    def leave(self, state: str, retval: Any, traceback: str | None = None) -> None:
        """Tell the task and whoever listens how the run ended. An error in a hook is logged."""
        task, request = self.task, self.request
        args, kwargs = request.args, request.kwargs
        try:
            if state == states.SUCCESS:
                task.on_success(retval, self.id, args, kwargs)
                if signals.task_success:
                    signals.task_success.send(sender=task, result=retval)
            elif state == states.RETRY:
                self._tell_retry(retval, traceback)
            elif state == states.FAILURE:
                self._tell_failure(retval, traceback)
            elif state == states.REVOKED and signals.task_revoked:
                signals.task_revoked.send(
                    sender=task, request=request, terminated=False, signum=None, expired=False
                )
            if state not in _UNFINISHED:
                task.after_return(state, retval, self.id, args, kwargs, None)
        except Exception:
            log.exception("a hook of task %s[%s] failed; its result stays", task.name, self.id)
        finally:
            if signals.task_postrun:
                signals.task_postrun.send(
                    sender=task,
                    task_id=self.id,
                    task=task,
                    args=args,
                    kwargs=kwargs,
                    retval=retval,
                    state=state,
                )

    def _tell_retry(self, retry: BaseException, traceback: str | None) -> None:
        cause = getattr(retry, "exc", None) or retry
        einfo = ExceptionInfo(cause, traceback)
        request = self.request
        self.task.on_retry(cause, self.id, request.args, request.kwargs, einfo)
        if signals.task_retry:
            signals.task_retry.send(sender=self.task, request=request, reason=retry, einfo=einfo)

    def _tell_failure(self, exc: BaseException, traceback: str | None) -> None:
        einfo = ExceptionInfo(exc, traceback)
        request = self.request
        self.task.on_failure(exc, self.id, request.args, request.kwargs, einfo)
        if signals.task_failure:
            signals.task_failure.send(
                sender=self.task,
                task_id=self.id,
                exception=exc,
                args=request.args,
                kwargs=request.kwargs,
                traceback=einfo.tb,
                einfo=einfo,
            )


def ending_state(raised: BaseException | None, ended: State | None) -> str:
    """The Celery state of a run that raised `raised` and that the engine calls `ended`."""
    if isinstance(raised, Retry) or ended is State.RETRYING:
        return states.RETRY
    if isinstance(raised, Reject):
        return states.REJECTED
    if isinstance(raised, (Ignore, engine.Ignore)):
        return states.IGNORED
    if isinstance(raised, engine.TaskCancelled) or ended is State.REVOKED:
        return states.REVOKED
    return states.SUCCESS if ended is State.SUCCEEDED else states.FAILURE
