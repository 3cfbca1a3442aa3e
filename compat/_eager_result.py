"""`EagerResult`: of a task that has run in place, without a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskmq.compat import states
from taskmq.compat._async_result import AsyncResult
from taskmq.compat._joining import assert_will_not_block
from taskmq.compat._state import app_or_default
from taskmq.message import ResultRecord
from taskmq.states import State

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("EagerResult",)

_ENDED = {
    states.SUCCESS: State.SUCCEEDED,
    states.FAILURE: State.FAILED,
    states.REVOKED: State.REVOKED,
    states.RETRY: State.RETRYING,
}


class EagerResult(AsyncResult):
    """The result of a task that has run in place."""

    def __init__(
        self,
        id: str,  # noqa: A002 - Celery's name
        ret_value: Any,
        state: str,
        traceback: str | None = None,
        name: str | None = None,
    ) -> None:
        self.id = id
        self.ignored = False
        self.parent = None
        self._result = ret_value
        self._state = state
        self._traceback = traceback
        self._task_name = name

    @property
    def app(self) -> Celery:  # type: ignore[override]
        """The current app."""
        return app_or_default()

    def _record(self) -> ResultRecord | None:
        return None

    def __reduce_args__(self) -> tuple[Any, ...]:
        return self.id, self._result, self._state, self._traceback, self._task_name

    @property
    def taskmq_state(self) -> State:
        return _ENDED.get(self._state, State.UNKNOWN)

    @property
    def state(self) -> str:
        return self._state

    status = state

    @property
    def result(self) -> Any:
        return self._result

    info = result

    @property
    def traceback(self) -> str | None:
        return self._traceback

    @property
    def name(self) -> str | None:
        return self._task_name

    @property
    def children(self) -> list[AsyncResult] | None:
        return []

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
        """The value, or the error: raised with `propagate`, else returned. There is nothing to wait for."""
        if disable_sync_subtasks:
            assert_will_not_block()
        return self.maybe_throw(propagate=propagate, callback=callback)

    wait = get

    def forget(self) -> None:
        """Nothing is stored of it."""

    def revoke(self, *args: Any, **kwargs: Any) -> None:
        """It has run; from now on it counts as revoked."""
        self._state = states.REVOKED

    def __repr__(self) -> str:
        return f"<EagerResult: {self.id}>"
