"""A call that has not been made yet: a task with arguments and options, as a value.

Its wire form is Celery's signature, so that both fleets can run each other's workflows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from taskmq.task import Task

R = TypeVar("R")


class Signature(Generic[R]):
    """Made by `task.s(...)` and `task.si(...)`. Immutable: `set` gives a copy."""

    def __init__(
        self,
        task: Task[..., R],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        immutable: bool = False,
    ) -> None:
        self.task = task
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})
        self.options = dict(options or {})
        self.immutable = immutable

    def wire(self) -> dict[str, Any]:
        """The signature as JSON values."""
        return {
            "task": self.task.name,
            "args": list(self.args),
            "kwargs": dict(self.kwargs),
            "options": dict(self.options),
            "subtask_type": None,
            "immutable": self.immutable,
        }
