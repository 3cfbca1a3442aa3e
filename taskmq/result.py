"""What a caller holds of a submitted task: its state, its value, and the wish to stop it."""

from __future__ import annotations

import logging
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from taskmq.errors import ResultError, ResultTimeout, TaskExpired, TaskRevoked
from taskmq.states import State

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.message import ResultRecord

log = logging.getLogger("taskmq.result")

R = TypeVar("R")

# How long one wait lasts before the state is looked at, so that a result that was forgotten ends the wait.
_LOOK_EVERY = 5.0


class Result(Generic[R]):
    """The result of one task, by id. Holds no connection and may be made for any id (`app.result`)."""

    __slots__ = ("_keeps_result", "_submitted", "app", "id", "task")

    def __init__(
        self,
        app: App,
        task_id: str,
        *,
        task: str = "",
        keeps_result: bool = True,
        submitted: bool = False,
    ) -> None:
        self.app = app
        self.id = task_id
        self.task = task
        self._keeps_result = keeps_result
        self._submitted = submitted

    def __repr__(self) -> str:
        return f"<result {self.id}{' of ' + self.task if self.task else ''}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def state(self) -> State:
        """Where the task stands; UNKNOWN when the store has neither its message nor its result."""
        return self.app.state(self.id)

    def ready(self) -> bool:
        """Whether the task has ended, with success or without."""
        return self.state.final

    def exists(self) -> bool:
        """Whether the store knows this task."""
        return self.state is not State.UNKNOWN

    def record(self) -> ResultRecord | None:
        """The stored row: a final state or progress; None while there is none."""
        return self.app.results.get(self.id)

    @property
    def progress(self) -> Any:
        """The value of the last `ctx.progress`, or None; None again once the task has ended."""
        record = self.record()
        if record is None or record.state.final or record.body is None:
            return None
        return self.app.codec.decode_value(record.body, record.content_type)

    @property
    def traceback(self) -> str | None:
        """The traceback text of a failure, if one was stored."""
        record = self.record()
        return record.traceback if record else None

    def get(self, timeout: float | None = None, propagate: bool = True) -> R:
        """Wait for the end and return the value.

        `timeout` in seconds, 0 looks once, None waits without a deadline. When the task ended without
        success its exception is raised: rebuilt where its class is a built-in, TaskMQ's or from a module
        that defines tasks, else `RemoteError`; `TaskRevoked` and `TaskExpired` for those ends. With
        `propagate=False` it is returned instead. Raises `ResultTimeout`; `ResultError` when there will
        be no result (`ignore_result`, forgotten, swept); `ResultUnavailable` when the store does not
        answer.

        Inside a task this holds a slot while it waits and may deadlock once every slot does so: it is
        logged as a warning; a chain or `link` waits without a slot.
        """
        record = self._wait(timeout)
        if record.state is State.SUCCEEDED:
            if record.body is None:
                return None  # type: ignore[return-value]
            return self.app.codec.decode_value(record.body, record.content_type)  # type: ignore[no-any-return]
        error = self.app.rebuild_error(record)
        if propagate:
            raise error
        return error  # type: ignore[return-value]

    def forget(self) -> None:
        """Delete the stored result; the task itself goes on."""
        self.app.results.forget([self.id])

    def revoke(self, *, terminate: bool = False, reason: str = "") -> State:
        """Never start this task; with `terminate` also stop it where it is running.

        Returns the state it was in. A final one: it was over already. A running one without `terminate`:
        it ends as revoked once it calls `ctx.check_cancelled()`.
        """
        return self.app.revoke([self.id], terminate=terminate, reason=reason)[0].was

    def __await__(self) -> Generator[Any, None, R]:
        """`await result`: as `get()`, without blocking the event loop."""
        import asyncio

        return asyncio.to_thread(self.get).__await__()

    def _wait(self, timeout: float | None) -> ResultRecord:
        if not self._keeps_result:
            raise ResultError(
                f"task {self.id} keeps no result (ignore_result); there is none to get"
            )
        self.app.warn_of_waiting(self)
        left = timeout
        while True:
            step = _LOOK_EVERY if left is None else min(left, _LOOK_EVERY)
            found = self.app.results.wait([self.id], step).get(self.id)
            if found is not None:
                return found
            if left is not None:
                # Counted in what was waited and not by a clock, so that a fake one cannot make it endless.
                left -= step
                if left <= 0:
                    raise ResultTimeout(
                        f"task {self.id} had not ended after {timeout:g} s; its state is {self.state}"
                    )
            if self._submitted and self.state is State.UNKNOWN:
                raise ResultError(
                    f"task {self.id} has neither a message nor a result: it was forgotten, purged, or its "
                    "result was kept for less time than this waited"
                )


def ending_error(task_id: str, state: State) -> Exception:
    """The exception of an end that stored none of its own."""
    if state is State.REVOKED:
        return TaskRevoked(f"task {task_id} was revoked")
    if state is State.EXPIRED:
        return TaskExpired(f"task {task_id} was not started before it expired")
    return ResultError(f"task {task_id} ended as {state} without saying why")
