"""Results under Celery's names: of one task, of one that ran in place, of a group.

Source: Celery's `celery.result` reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmq.compat._async_result import AsyncResult, ResultBase
from taskmq.compat._eager_result import EagerResult
from taskmq.compat._group_result import GroupResult, ResultSet
from taskmq.compat._joining import allow_join_result, assert_will_not_block, denied_join_result

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = (
    "AsyncResult",
    "EagerResult",
    "GroupResult",
    "ResultBase",
    "ResultSet",
    "allow_join_result",
    "assert_will_not_block",
    "denied_join_result",
    "result_from_tuple",
)


def result_from_tuple(value: Any, app: Celery | None = None) -> Any:
    """The result that `as_tuple` gave; a result as it is."""
    if isinstance(value, ResultBase):
        return value
    (task_id, parent), members = value
    above = result_from_tuple(parent, app) if parent else None
    if members is None:
        return AsyncResult(task_id, app=app, parent=above)
    found = [result_from_tuple(member, app) for member in members]
    return GroupResult(task_id, found, parent=above, app=app)
