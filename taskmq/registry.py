"""The tasks of one app by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from taskmq.errors import ConfigError, NotRegistered, nearest

if TYPE_CHECKING:
    from taskmq.task import Task

# A name never leads to an import, and this is what may stand in it all the same (it reaches logs and tables).
_NAME = re.compile(r"^[\w.:<>-]{1,255}$")


def check_task_name(name: Any) -> str:
    """A task name as text; `ConfigError` naming what it may be made of."""
    if isinstance(name, str) and _NAME.match(name):
        return name
    raise ConfigError(f"a task name is 1 to 255 letters, digits or any of '_.:<>-', got {name!r}")


class Registry(Mapping[str, "Task[..., Any]"]):
    """Name to task, in order of registration. Written only while modules are imported."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[..., Any]] = {}

    def __getitem__(self, name: str) -> Task[..., Any]:
        """The task of this name; `NotRegistered` (a `KeyError`) with the likely name."""
        try:
            return self._tasks[name]
        except KeyError:
            likely = nearest(name, self._tasks)
            raise NotRegistered(f"no task {name!r} is registered here.{likely}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, name: object) -> bool:
        return name in self._tasks

    def get(self, name: object, default: Any = None) -> Any:
        """The task of this name, else `default`; a submit by name asks this each time."""
        return self._tasks.get(name, default)  # type: ignore[call-overload]

    def add(self, task: Task[..., Any]) -> None:
        """Register a task.

        The same function again (a reloaded module, a notebook cell) replaces the earlier one; a
        different function under a name that is taken is a `ConfigError`.
        """
        earlier = self._tasks.get(task.name)
        if earlier is not None and _origin(earlier) != _origin(task):
            raise ConfigError(
                f"two tasks are named {task.name!r}: {'.'.join(_origin(earlier))} and "
                f"{'.'.join(_origin(task))}; give one of them @task(name=...)"
            )
        self._tasks[task.name] = task

    def own(self) -> list[Task[..., Any]]:
        """The application's tasks by name, without those that every App brings along."""
        return [
            task for name, task in sorted(self._tasks.items()) if not name.startswith("taskmq.")
        ]

    def modules(self) -> frozenset[str]:
        """The modules whose functions are tasks."""
        return frozenset(_origin(task)[0] for task in self._tasks.values())


def _origin(task: Task[..., Any]) -> tuple[str, str]:
    fn = task.fn
    module = getattr(fn, "__module__", None) or type(fn).__module__
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    return str(module), str(name)
