"""`app.tasks`: the Celery tasks of one app by name."""

from __future__ import annotations

import inspect
from typing import Any

from taskmq.compat.exceptions import NotRegistered
from taskmq.errors import nearest

__all__ = ("TaskRegistry",)


class TaskRegistry(dict[str, Any]):
    """Name to task; a name that is not there raises `NotRegistered` (also a `KeyError`)."""

    NotRegistered = NotRegistered

    def __missing__(self, name: str) -> Any:
        raise NotRegistered(f"no task {name!r} is registered here.{nearest(name, self)}")

    def register(self, task: Any) -> None:
        """Add a task under its name; a class is made an instance of first."""
        if not task.name:
            raise ValueError(f"a task needs a name to be registered, {task!r} has none")
        self[task.name] = task() if inspect.isclass(task) else task

    def unregister(self, name: Any) -> None:
        """Remove a task, given by name or itself."""
        try:
            del self[getattr(name, "name", name)]
        except KeyError:
            raise NotRegistered(f"no task {name!r} is registered here") from None

    def regular(self) -> dict[str, Any]:
        """Every task: TaskMQ's own are not among them."""
        return dict(self)

    def periodic(self) -> dict[str, Any]:
        """Tasks of the old periodic class, which does not exist any more."""
        return {}
