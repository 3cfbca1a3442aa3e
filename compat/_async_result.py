"""`AsyncResult`: what a caller holds of a task.

State is where the message is or what the store says (DESIGN §8): unknown, queued, scheduled and reserved read
as PENDING, running as STARTED only under `task_track_started`, dead as FAILURE, expired as REVOKED.
`taskmq_state` gives the finer one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NoReturn

from taskmq.compat import exceptions, states
from taskmq.compat._joining import assert_will_not_block
from taskmq.compat._state import app_or_default
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.compat.failures import rebuilt
from taskmq.errors import ResultError
from taskmq.message import ResultRecord
from taskmq.states import State

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("AsyncResult", "ResultBase")

# How often a waiting `get` looks whether the result was forgotten; an ending wakes it at once.
_LOOK_EVERY = 5.0


class ResultBase:
    """What all results have in common."""

    #: The result this one follows in a chain.
    parent: Any = None


class AsyncResult(ResultBase):
    """The result of one task, by id. Holds no connection; may be made for any id."""

    TimeoutError = exceptions.TimeoutError

    def __init__(
        self,
        id: str,  # noqa: A002 - Celery's name
        backend: Any = None,
        task_name: str | None = None,
        app: Celery | None = None,
        parent: Any = None,
    ) -> None:
        if not isinstance(id, str) or not id:
            raise ValueError(f"AsyncResult requires valid id, not {type(id).__name__} {id!r}")
        self.app = app_or_default(app)
        self.id = id
        self.parent = parent
        self.ignored = False
        self._task_name = task_name
        self._kept: ResultRecord | None = None
        self._value: Any = None
        self._decoded = False

    # -- identity ---------------------------------------------------------------------------------

    @property
    def task_id(self) -> str:
        """The same as `id`."""
        return self.id

    @property
    def backend(self) -> Any:
        """The result store of the app."""
        return self.app.backend

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.id}>"

    def __str__(self) -> str:
        return str(self.id)

    def __hash__(self) -> int:
        return hash(self.id)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AsyncResult):
            return other.id == self.id
        if isinstance(other, str):
            return other == self.id
        return NotImplemented

    def __copy__(self) -> AsyncResult:
        return type(self)(*self.__reduce_args__())

    def __reduce__(self) -> Any:
        return type(self), self.__reduce_args__()

    def __reduce_args__(self) -> tuple[Any, ...]:
        return self.id, None, self._task_name, None, self.parent

    def as_tuple(self) -> Any:
        """((id, parent as a tuple), None): what `result_from_tuple` takes."""
        return (self.id, self.parent.as_tuple() if self.parent else None), None

    def as_list(self) -> list[str]:
        """The ids of this and of what it follows."""
        return [self.id, *(self.parent.as_list() if self.parent else [])]

    def own_ids(self) -> list[str]:
        """The ids of the tasks whose ends this stands for."""
        return [self.id]

    def _parents(self) -> Iterator[Any]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    # -- state ------------------------------------------------------------------------------------

    def _record(self) -> ResultRecord | None:
        """The stored row; kept once the task has ended."""
        if self._kept is not None:
            return self._kept
        record = self.app.engine.results.get(self.id)
        if record is not None and record.state.final:
            self._kept = record
        return record

    @property
    def taskmq_state(self) -> State:
        """Where the task stands in TaskMQ's own words, finer than `state`."""
        if self._kept is not None:
            return self._kept.state
        return self.app.engine.state(self.id)

    @property
    def state(self) -> str:
        """PENDING, STARTED, RETRY, SUCCESS, FAILURE, REVOKED, or the task's own."""
        record = self._record()
        if record is not None and (record.state.final or record.label):
            return states.celery_state(record.state, record.label)
        found = self.taskmq_state
        tracked = found is State.RUNNING and self._tracks_started(record)
        return states.celery_state(found, track_started=tracked)

    status = state

    def _tracks_started(self, record: ResultRecord | None) -> bool:
        name = self._task_name or (record.task if record else "")
        task = self.app.tasks.get(name) if name else None
        own = task.track_started if task is not None else None
        return bool(self.app.conf.task_track_started if own is None else own)

    def ready(self) -> bool:
        """Whether the task has ended, with success or without."""
        return self.state in states.READY_STATES

    def successful(self) -> bool:
        """Whether the task has ended with success."""
        return self.state == states.SUCCESS

    def failed(self) -> bool:
        """Whether the task has failed."""
        return self.state == states.FAILURE

    def exists(self) -> bool:
        """Whether the store knows this task."""
        return self.taskmq_state is not State.UNKNOWN

    @property
    def result(self) -> Any:
        """The return value, the exception, or the value of `update_state`; None while there is none."""
        if self._decoded:
            return self._value
        record = self._record()
        if record is None:
            return None
        value = self._value_of(record)
        if record.state.final:
            self._value, self._decoded = value, True
        return value

    info = result

    def _value_of(self, record: ResultRecord) -> Any:
        if record.state in (State.SUCCEEDED, State.RUNNING) or record.label:
            return self.app.engine.codec.decode_value(record.body, record.content_type)
        return rebuilt(self.app, record)

    @property
    def traceback(self) -> str | None:
        """The traceback of a failure, as text."""
        record = self._record()
        return record.traceback if record else None

    @property
    def name(self) -> str | None:
        """The name of the task."""
        record = self._record()
        return (record.task if record else "") or self._task_name

    @property
    def worker(self) -> str | None:
        """The worker that ran it."""
        record = self._record()
        return record.worker if record else None

    @property
    def retries(self) -> int | None:
        """How often it was retried."""
        record = self._record()
        return record.retries if record else None

    @property
    def date_done(self) -> datetime | None:
        """When it ended, in UTC."""
        record = self._record()
        if record is None or record.ended_at is None:
            return None
        return datetime.fromtimestamp(record.ended_at, timezone.utc)

    @property
    def children(self) -> list[AsyncResult] | None:
        """The results of the tasks it has submitted, once it has ended."""
        record = self._record()
        if record is None or not record.state.final:
            return None
        return [type(self)(child, app=self.app) for child in record.children]

    def collect(self, intermediate: bool = False, **kwargs: Any) -> Iterator[tuple[Any, Any]]:
        """(result, value) of this task and of everything it submitted, waiting for each."""
        kwargs.setdefault("propagate", True)
        waiting: list[AsyncResult] = [self]
        while waiting:
            result = waiting.pop(0)
            yield result, result.get(**kwargs)
            waiting += result.children or []

    # -- waiting ----------------------------------------------------------------------------------

    def get(
        self,
        timeout: float | None = None,
        propagate: bool = True,
        interval: float = 0.5,
        no_ack: bool = True,
        follow_parents: bool = True,
        callback: Callable[[str, Any], Any] | None = None,
        on_message: Any = None,
        on_interval: Callable[[], Any] | None = None,
        disable_sync_subtasks: bool = True,
    ) -> Any:
        """Wait for the end and return the value; with `propagate` raise the task's exception.

        `timeout` in seconds raises `TimeoutError`. Returns None at once when the call keeps no result.
        Inside a task RuntimeError is raised, unless `disable_sync_subtasks=False`. With
        `follow_parents` an error of a task this one follows is raised. `on_interval` is called every
        `interval` seconds; without it `interval` has nothing to do, since an ending wakes the wait.
        """
        if on_message is not None:
            raise ImproperlyConfigured("get(on_message=): this result store sends no messages")
        if self.ignored:
            return None
        if disable_sync_subtasks:
            assert_will_not_block()
        self._wait(timeout, on_interval, interval)
        if propagate and follow_parents:
            for parent in reversed(list(self._parents())):
                parent.maybe_throw()
        return self.maybe_throw(propagate=propagate, callback=callback)

    wait = get

    def _wait(
        self, timeout: float | None, on_interval: Callable[[], Any] | None, interval: float
    ) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        step = interval if on_interval is not None else _LOOK_EVERY
        while not self._ended():
            left = step if deadline is None else min(step, deadline - time.monotonic())
            if left <= 0:
                raise exceptions.TimeoutError("The operation timed out.")
            self.app.engine.results.wait([self.id], left)
            if on_interval is not None and not self._ended():
                on_interval()

    def _ended(self) -> bool:
        return self._record() is not None and self.state in states.READY_STATES

    def maybe_throw(
        self, propagate: bool = True, callback: Callable[[str, Any], Any] | None = None
    ) -> Any:
        """The value; the task's exception is raised if it ended with one and `propagate` is set."""
        state, value = self.state, self.result
        if state in states.PROPAGATE_STATES and propagate:
            self.throw(value)
        if callback is not None:
            callback(self.id, value)
        return value

    maybe_reraise = maybe_throw

    def throw(self, value: Any) -> NoReturn:
        """Raise a failure's exception."""
        if isinstance(value, BaseException):
            raise value
        raise ResultError(f"task {self.id} failed with {value!r}")

    def forget(self) -> None:
        """Delete the stored result, and those of the tasks it follows."""
        for result in (self, *self._parents()):
            result._kept, result._value, result._decoded = None, None, False
            self.app.engine.results.forget([result.id])

    def revoke(
        self,
        connection: Any = None,
        terminate: bool = False,
        signal: Any = None,
        wait: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Never start this task; with `terminate` also stop it where it runs.

        Unlike Celery's it is stored, and holds for workers that start later too.
        """
        self.app.control.revoke(
            self.id, terminate=terminate, signal=signal, reply=wait, timeout=timeout
        )
