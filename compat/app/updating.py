"""`update_state`: a state that a task gives itself, before its end or instead of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from taskmq.codec import encode_failure
from taskmq.compat import states
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.message import ResultRecord
from taskmq.states import State

if TYPE_CHECKING:
    from taskmq.compat.app.task import Task

__all__ = ("update_state", "keep_own_state", "final_record")

_FINAL = {
    states.SUCCESS: State.SUCCEEDED,
    states.FAILURE: State.FAILED,
    states.REVOKED: State.REVOKED,
}


def update_state(task: Task, task_id: str | None, state: str | None, meta: Any) -> None:
    """Store `state` and `meta` for a task; for the one running here through its worker (P19's channel)."""
    if not task_id:
        raise ImproperlyConfigured(
            f"task {task.name}: update_state outside of a run needs task_id="
        )
    if state is None:
        state = task.AsyncResult(task_id).state
    if not isinstance(state, str) or not state:
        raise ImproperlyConfigured(f"update_state(state=): text like 'PROGRESS', got {state!r}")
    context = task.request._engine
    if context is not None and context.task_id == task_id and state not in _FINAL:
        # Fenced: a run that lost its lease cannot overwrite what its successor reports.
        context.progress(meta, state)
        task.request._own_state = (state, meta)
        return
    _write(task, task_id, state, meta)


def keep_own_state(task: Task) -> None:
    """Write the last state a run gave itself, before it ends by `Ignore`.

    Progress reaches the store with the worker's next turn, and one on its way is dropped for the ending
    that follows it; an ignored run has no ending of its own to store.
    """
    request = task.request
    if request._own_state is not None and request.id is not None:
        _write(task, request.id, *request._own_state)


def _write(task: Task, task_id: str, state: str, meta: Any) -> None:
    engine = task.app.engine
    if state in _FINAL:
        record = final_record(task.app, task_id, state, meta, task.name)
    else:
        body, content_type = engine.codec.encode_value(meta, "meta")
        record = ResultRecord(
            task_id=task_id,
            state=State.RUNNING,
            label=state,
            body=body,
            content_type=content_type,
            task=task.name,
        )
    engine.results.put([record])


def final_record(
    app: Any, task_id: str, state: str, value: Any, task_name: str = ""
) -> ResultRecord:
    """A result row of a task that ended as `state`; a failure's value is an exception, or text of one."""
    engine = app.engine
    now = engine.clock.now()
    expires = engine.config.result_expires
    content_type = "application/json"
    if state == states.SUCCESS:
        body, content_type = engine.codec.encode_value(value)
    elif isinstance(value, dict) and "exc_type" in value:
        told = value.get("exc_message", "")
        failure = {
            "exc_type": str(value["exc_type"]),
            "exc_module": str(value.get("exc_module") or "builtins"),
            "exc_message": told if isinstance(told, list) else [told],
        }
        body = json.dumps(failure, default=str).encode()
    else:
        body = encode_failure(value if isinstance(value, BaseException) else Exception(value))
    return ResultRecord(
        task_id=task_id,
        state=_FINAL[state],
        body=body,
        content_type=content_type,
        ended_at=now,
        expires_at=now + expires if expires else None,
        task=task_name,
    )
