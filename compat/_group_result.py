"""`GroupResult`: the results of a group, in the order of its calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from taskmq.compat import exceptions
from taskmq.compat._async_result import AsyncResult, ResultBase
from taskmq.compat._joining import assert_will_not_block
from taskmq.compat._missing import NotThereYet
from taskmq.compat._state import app_or_default

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("GroupResult", "ResultSet")


class ResultSet(ResultBase):
    """Several results, waited for together."""

    def __init__(self, results: Any, app: Celery | None = None, **kwargs: Any) -> None:
        self._app = app
        self.results: list[Any] = list(results)

    @property
    def app(self) -> Celery:
        """The app of the results."""
        return self._app or app_or_default()

    def add(self, result: Any) -> None:
        """Add a result that is not among them."""
        if result not in self.results:
            self.results.append(result)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: [{', '.join(map(str, self.results))}]>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ResultSet):
            return other.results == self.results
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def ready(self) -> bool:
        """Whether all have ended."""
        return all(result.ready() for result in self.results)

    def successful(self) -> bool:
        """Whether all have ended with success."""
        return all(result.successful() for result in self.results)

    def failed(self) -> bool:
        """Whether one has failed."""
        return any(result.failed() for result in self.results)

    def waiting(self) -> bool:
        """Whether one has not ended."""
        return any(not result.ready() for result in self.results)

    def completed_count(self) -> int:
        """How many have ended with success."""
        return sum(int(result.successful()) for result in self.results)

    def maybe_throw(self, callback: Any = None, propagate: bool = True) -> None:
        """Raise the exception of the first that failed."""
        for result in self.results:
            result.maybe_throw(callback=callback, propagate=propagate)

    def join(
        self,
        timeout: float | None = None,
        propagate: bool = True,
        interval: float = 0.5,
        callback: Any = None,
        no_ack: bool = True,
        on_message: Any = None,
        disable_sync_subtasks: bool = True,
        on_interval: Any = None,
    ) -> list[Any]:
        """Wait for all and return their values in order; `timeout` is for all of them together.

        Raises the first failure in order with `propagate`, `TimeoutError`, and RuntimeError inside a task.
        """
        if disable_sync_subtasks:
            assert_will_not_block()
        deadline = None if timeout is None else time.monotonic() + timeout
        values = []
        for result in self.results:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0 and not result.ready():
                raise exceptions.TimeoutError("join operation timed out")
            value = result.get(
                timeout=left if left is None else max(0.0, left),
                propagate=propagate,
                interval=interval,
                disable_sync_subtasks=False,
                on_message=on_message,
                on_interval=on_interval,
            )
            if callback is not None:
                callback(result.id, value)
            else:
                values.append(value)
        return values

    get = join
    join_native = join

    def iterate(self, timeout: float | None = None, propagate: bool = True) -> Iterator[Any]:
        """The values, in order, each as soon as it is there."""
        for result in self.results:
            yield result.get(timeout=timeout, propagate=propagate)

    def own_ids(self) -> list[str]:
        """The ids of the tasks whose ends this stands for."""
        return [task_id for result in self.results for task_id in result.own_ids()]

    def forget(self) -> None:
        """Delete the stored results."""
        for result in self.results:
            result.forget()

    def revoke(
        self, connection: Any = None, terminate: bool = False, signal: Any = None, **kwargs: Any
    ) -> None:
        """Never start these tasks; with `terminate` also stop those that run."""
        ids = [result.id for result in self.results]
        self.app.control.revoke(ids, terminate=terminate, signal=signal)


class GroupResult(ResultSet):
    """The results of one group; `id` names the group in this process only."""

    def __init__(
        self,
        id: str | None = None,  # noqa: A002 - Celery's name
        results: Any = None,
        parent: Any = None,
        app: Celery | None = None,
        **kwargs: Any,
    ) -> None:
        self.id = id
        self.parent = parent
        super().__init__(results or (), app=app)

    def __repr__(self) -> str:
        return f"<GroupResult: {self.id} [{', '.join(map(str, self.results))}]>"

    def __str__(self) -> str:
        return str(self.id)

    @property
    def children(self) -> list[Any]:
        """The results."""
        return self.results

    def as_tuple(self) -> Any:
        """((id, parent as a tuple), the members as tuples): what `result_from_tuple` takes."""
        parent = self.parent.as_tuple() if self.parent else None
        return (self.id, parent), [result.as_tuple() for result in self.results]

    def as_list(self) -> list[str]:
        """The ids of the members."""
        return [str(result.id) for result in self.results if isinstance(result, AsyncResult)]

    def save(self, backend: Any = None) -> Any:
        """Not there yet: keep `as_tuple()` and read it back with `result_from_tuple`."""
        raise NotThereYet(
            "GroupResult.save is not there yet: keep as_tuple(), read it with result_from_tuple()"
        )

    def delete(self, backend: Any = None) -> None:
        """Not there yet: nothing was saved."""
        raise NotThereYet("GroupResult.delete is not there yet: use forget()")

    @classmethod
    def restore(cls, id: str, backend: Any = None, app: Any = None) -> Any:  # noqa: A002
        """Not there yet: read what `as_tuple()` gave with `result_from_tuple`."""
        raise NotThereYet("GroupResult.restore is not there yet: use result_from_tuple(as_tuple)")
