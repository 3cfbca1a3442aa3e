"""`group`: calls beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmq.compat.canvas.native import send
from taskmq.compat.canvas.signature import Signature, maybe_signature
from taskmq.ids import uuid

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("group",)


class group(Signature):  # noqa: N801 - Celery's name
    """`group(a.s(1), a.s(2))`, or one iterable of calls. Options hold for every member."""

    def __init__(self, *tasks: Any, app: Celery | None = None, **options: Any) -> None:
        members: Any = tasks
        if len(tasks) == 1:
            only = tasks[0]
            if isinstance(only, group):
                members = only.tasks
            elif not isinstance(only, dict):
                members = only
        found = [maybe_signature(task, app=app) for task in members]
        super().__init__(
            "celery.group",
            (),
            {"tasks": found},
            options,
            subtask_type="group",
            app=app or next((task._app for task in found if task._app), None),
        )

    @classmethod
    def _from(cls, d: Any, app: Celery | None) -> group:
        tasks = [maybe_signature(task, app=app) for task in d["kwargs"]["tasks"]]
        made = cls(tasks, app=app, **(d.get("options") or {}))
        made["immutable"] = bool(d.get("immutable"))
        return made

    @property
    def tasks(self) -> list[Signature]:
        """The members, in order."""
        found: list[Signature] = self.kwargs["tasks"]
        return found

    def reprcall(self, *args: Any, **kwargs: Any) -> str:
        return f"group({self.tasks!r})"

    def __len__(self) -> int:
        return len(self.tasks)

    def __bool__(self) -> bool:
        return True

    def clone(self, args: Any = None, kwargs: Any = None, **options: Any) -> group:
        """A copy; more arguments go to every member."""
        members = [task.clone(args, kwargs) for task in self.tasks]
        return group(members, app=self._app, **{**self.options, **options})

    def set_immutable(self, immutable: bool) -> None:
        """Make every member take exactly its own arguments, or not."""
        self["immutable"] = immutable
        for task in self.tasks:
            task.set_immutable(immutable)

    def link(self, callback: Any) -> Any:
        """Call this with the result of each member that succeeds."""
        for task in self.tasks:
            task.link(callback)
        return callback

    def link_error(self, errback: Any) -> Any:
        """Call this with the id of each member that fails."""
        for task in self.tasks:
            task.link_error(errback)
        return errback

    def freeze(self, task_id: str | None = None, **kwargs: Any) -> Any:
        """Settle the ids of all members; returns the group's result."""
        from taskmq.compat.result import GroupResult

        self.options.setdefault("task_id", task_id or uuid())
        return GroupResult(
            self.options["task_id"], [task.freeze() for task in self.tasks], app=self.app
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Submit it; the same as `apply_async`, as in Celery."""
        return self.apply_async(args, kwargs)

    def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Submit all of them, or none; their results as a `GroupResult`."""
        from taskmq.compat.result import GroupResult

        if self.app.conf.task_always_eager:
            return self.apply(args, kwargs, **options)
        group_id = options.pop("task_id", None) or self.options.get("task_id") or uuid()
        if not self.tasks:
            return GroupResult(group_id, [], app=self.app)
        given = {name: value for name, value in options.items() if value is not None}
        copied = self.clone(args, kwargs, **given)
        copied.options.pop("task_id", None)
        result = send(copied)
        result.id = group_id
        return result

    def apply(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Run the members in this process, one after the other."""
        from taskmq.compat.result import GroupResult

        options.pop("task_id", None)
        results = [task.clone(args, kwargs).apply(**options) for task in self.tasks]
        return GroupResult(uuid(), results, app=self.app)
