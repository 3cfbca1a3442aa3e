"""`app.backend`: the result store in the words of Celery's backends, for code that writes to it itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmq.compat import states
from taskmq.compat.app.updating import final_record
from taskmq.message import ResultRecord
from taskmq.states import State
from taskmq.transports.urls import mask_url

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("Backend",)


class Backend:
    """Reads and writes results by task id."""

    READY_STATES = states.READY_STATES
    UNREADY_STATES = states.UNREADY_STATES
    EXCEPTION_STATES = states.EXCEPTION_STATES

    def __init__(self, app: Celery) -> None:
        self.app = app

    def __repr__(self) -> str:
        return f"<Backend: {self.as_uri()}>"

    def as_uri(self, include_password: bool = False) -> str:
        """The URL of the store, its password masked unless asked for."""
        config = self.app.engine.config
        url = config.result_url or config.broker_url
        return url if include_password else mask_url(url)

    def get_state(self, task_id: str) -> str:
        """The Celery state of a task."""
        return self.app.AsyncResult(task_id).state

    get_status = get_state

    def get_result(self, task_id: str) -> Any:
        """The value or the exception of a task, None while there is none."""
        return self.app.AsyncResult(task_id).result

    def get_traceback(self, task_id: str) -> str | None:
        """The traceback of a failure."""
        return self.app.AsyncResult(task_id).traceback

    def get_task_meta(self, task_id: str, cache: bool = True) -> dict[str, Any]:
        """State, value, traceback and children of a task in one mapping."""
        result = self.app.AsyncResult(task_id)
        return {
            "task_id": task_id,
            "status": result.state,
            "result": result.result,
            "traceback": result.traceback,
            "children": [child.as_tuple() for child in result.children or ()],
            "date_done": result.date_done,
        }

    def wait_for(self, task_id: str, timeout: float | None = None, **kwargs: Any) -> dict[str, Any]:
        """As `get_task_meta`, once the task has ended."""
        self.app.AsyncResult(task_id).get(timeout=timeout, propagate=False)
        return self.get_task_meta(task_id)

    def store_result(
        self,
        task_id: str,
        result: Any,
        state: str,
        traceback: str | None = None,
        request: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Write a state and its value; returns the value."""
        engine = self.app.engine
        name = getattr(request, "task", None) or ""
        if state in states.READY_STATES:
            record = final_record(self.app, task_id, state, result, name)
        else:
            body, content_type = engine.codec.encode_value(result)
            record = ResultRecord(
                task_id=task_id,
                state=State.RUNNING,
                label="" if state == states.STARTED else state,
                body=body,
                content_type=content_type,
                task=name,
            )
        engine.results.put([record])
        return result

    def mark_as_started(self, task_id: str, **meta: Any) -> Any:
        """Write that a task has started."""
        return self.store_result(task_id, meta, states.STARTED)

    def mark_as_done(self, task_id: str, result: Any, request: Any = None, **kwargs: Any) -> None:
        """Write that a task has succeeded."""
        self.store_result(task_id, result, states.SUCCESS, request=request)

    def mark_as_failure(
        self,
        task_id: str,
        exc: BaseException,
        traceback: str | None = None,
        request: Any = None,
        **kwargs: Any,
    ) -> None:
        """Write that a task has failed."""
        self.store_result(task_id, exc, states.FAILURE, traceback, request=request)

    def forget(self, task_id: str) -> None:
        """Delete the result of a task."""
        self.app.engine.results.forget([task_id])

    def __getattr__(self, name: str) -> Any:
        from taskmq.compat._missing import missing_attribute

        raise missing_attribute("backend", name, self)
