"""What a caller holds of a submitted task: its state, its value, and the wish to stop it."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from taskmq.errors import ResultError, ResultTimeout, TaskExpired, TaskRevoked
from taskmq.options import check_seconds
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

    __slots__ = ("_keeps_result", "_submitted", "app", "id", "parent", "task")

    def __init__(
        self,
        app: App,
        task_id: str,
        *,
        task: str = "",
        keeps_result: bool = True,
        submitted: bool = False,
        parent: Any = None,
    ) -> None:
        self.app = app
        self.id = task_id
        self.task = task
        #: In a workflow the `Result` or `GroupResult` of the step before, else None.
        self.parent = parent
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
        """The value of the last `ctx.progress`, or None; None again once the task has ended or is retried."""
        record = self.record()
        if record is None or record.state is not State.RUNNING or record.body is None:
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
        return self._value(self._wait(timeout), propagate)

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
        """`await result`: as `get()`, without blocking the event loop; `asyncio.wait_for` sets a deadline."""
        return self._awaited().__await__()

    async def _awaited(self) -> R:
        import asyncio

        self._check_kept()
        _warn_inside_a_task()
        while True:
            found = await self.app.waiter.record(self.id, _LOOK_EVERY)
            if found is not None:
                return self._value(found, True)
            if await asyncio.to_thread(self._nothing_to_come):
                raise self._lost()

    def _wait(self, timeout: float | None) -> ResultRecord:
        left = check_timeout(timeout)
        self._check_kept()
        _warn_inside_a_task()
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
            if self._nothing_to_come():
                raise self._lost()

    def _value(self, record: ResultRecord, propagate: bool) -> R:
        if record.state is State.SUCCEEDED:
            return self.app.codec.decode_value(record.body, record.content_type)  # type: ignore[no-any-return]
        error = rebuild_error(self.app, record)
        if propagate:
            raise error
        return error  # type: ignore[return-value]

    def _check_kept(self) -> None:
        if not self._keeps_result:
            raise ResultError(
                f"task {self.id} keeps no result (ignore_result); there is none to get"
            )

    def _lost(self) -> ResultError:
        return ResultError(
            f"task {self.id} has neither a message nor a result: it was forgotten, purged, or its result "
            "was kept for less time than this waited"
        )

    def _nothing_to_come(self) -> bool:
        """Whether the store knows nothing of a task that it would know if it were still to end."""
        # The step before is looked at first: once it has ended, its settle has submitted this one.
        if not self._submitted and (self.parent is None or not self.parent.over()):
            return False
        return self.state is State.UNKNOWN

    def over(self) -> bool:
        """Whether it has ended, or can be seen never to."""
        return self.ready() or self._nothing_to_come()


class GroupResult:
    """The results of a group, in the order of its calls."""

    __slots__ = ("app", "results")

    def __init__(self, results: Sequence[Any], app: App | None) -> None:
        self.results = tuple(results)
        self.app = app

    def __repr__(self) -> str:
        return f"<results of {len(self.results)} calls>"

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __getitem__(self, index: int) -> Any:
        return self.results[index]

    @property
    def completed(self) -> int:
        """How many have ended, with success or without."""
        return sum(result.ready() for result in self.results)

    def ready(self) -> bool:
        """Whether all have ended."""
        return all(result.ready() for result in self.results)

    def over(self) -> bool:
        """Whether all have ended, or can be seen never to."""
        return all(result.over() for result in self.results)

    def get(self, timeout: float | None = None, propagate: bool = True) -> list[Any]:
        """Wait for all and return their values in order; `timeout` is for all of them together.

        The first one in order that ended without success raises its exception, or with
        `propagate=False` has it in its place. Raises as `Result.get`.
        """
        timeout = check_timeout(timeout)
        if self.app is None or timeout is None:
            return [result.get(timeout, propagate) for result in self.results]
        monotonic = self.app.clock.monotonic
        deadline = monotonic() + timeout
        return [result.get(max(0.0, deadline - monotonic()), propagate) for result in self.results]

    def forget(self) -> None:
        """Delete the stored results."""
        for result in self.results:
            result.forget()

    def revoke(self, *, terminate: bool = False, reason: str = "") -> list[State]:
        """Revoke every one, as `Result.revoke`; the states they were in."""
        return [result.revoke(terminate=terminate, reason=reason) for result in self.results]

    def __await__(self) -> Generator[Any, None, list[Any]]:
        """`await results`: as `get()`, without blocking the event loop."""
        return _await_all(self.results).__await__()


async def _await_all(results: Sequence[Any]) -> list[Any]:
    return [await result for result in results]


def check_timeout(timeout: Any) -> float | None:
    """Seconds from 0, or None for no deadline; `ConfigError` otherwise."""
    return None if timeout is None else check_seconds(timeout, "get(timeout)")


def rebuild_error(app: App, record: ResultRecord) -> BaseException:
    """The exception a task ended with; of a class that is not trusted here, `RemoteError`."""
    from taskmq.codec import allow_modules, rebuild_failure

    if record.body is not None:
        # The packages whose modules define tasks: their exceptions are often defined beside those.
        ours = {module.split(".")[0] for module in app.registry.modules()}
        return rebuild_failure(record.body, allow=allow_modules("builtins", "taskmq", *ours))
    if record.state is State.REVOKED:
        return TaskRevoked(f"task {record.task_id} was revoked")
    if record.state is State.EXPIRED:
        return TaskExpired(f"task {record.task_id} was not started before it expired")
    return ResultError(f"task {record.task_id} ended as {record.state} without saying why")


def _warn_inside_a_task() -> None:
    """Log that a task waits while it holds a slot, once in each run."""
    from taskmq.context import current_context

    context = current_context()
    if context is not None and not context.warned_of_waiting:
        context.warned_of_waiting = True
        log.warning(
            "task %s[%s] waits for the result of another task while it holds a slot; when all slots do so "
            "none is left to run what they wait for. A chain or link waits without a slot.",
            context.task.name,
            context.task_id,
        )
