"""`chain`: one call after the other, each with the result of the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmq.compat.canvas.native import send
from taskmq.compat.canvas.signature import Signature, maybe_signature
from taskmq.compat.utils.functional import is_list

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("chain",)


class chain(Signature):  # noqa: N801 - Celery's name
    """`chain(a.s(1), b.s())`, or `a.s(1) | b.s()`. What follows a group waits for all of it (a chord).

    Unlike Celery's, options given to a chain (`priority`, `queue`) hold for each of its steps.
    """

    def __init__(self, *tasks: Any, app: Celery | None = None, **options: Any) -> None:
        if len(tasks) == 1 and is_list(tasks[0]):
            tasks = tuple(tasks[0])
        steps: list[Signature] = []
        for task in tasks:
            step = maybe_signature(task, app=app)
            steps += step.tasks if isinstance(step, chain) and _plain(step) else [step]
        super().__init__(
            "celery.chain",
            (),
            {"tasks": steps},
            options,
            subtask_type="chain",
            app=app or next((step._app for step in steps if step._app), None),
        )

    @classmethod
    def _from(cls, d: Any, app: Celery | None) -> chain:
        tasks = [maybe_signature(task, app=app) for task in d["kwargs"]["tasks"]]
        made = cls(*tasks, app=app, **(d.get("options") or {}))
        made["immutable"] = bool(d.get("immutable"))
        return made

    @property
    def tasks(self) -> list[Signature]:
        """The steps, in order."""
        found: list[Signature] = self.kwargs["tasks"]
        return found

    def reprcall(self, *args: Any, **kwargs: Any) -> str:
        return " | ".join(repr(task) for task in self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __bool__(self) -> bool:
        return True

    def clone(self, args: Any = None, kwargs: Any = None, **options: Any) -> chain:
        """A copy; more arguments go to the first step."""
        steps = [task.clone() for task in self.tasks]
        if steps and (args or kwargs):
            steps[0] = steps[0].clone(args, kwargs)
        copied = chain(*steps, app=self._app, **{**self.options, **options})
        copied["immutable"] = self.immutable
        return copied

    def freeze(self, task_id: str | None = None, **kwargs: Any) -> Any:
        """Settle the ids of all steps; returns the result of the last."""
        parent = None
        result = None
        for at, step in enumerate(self.tasks):
            last = at == len(self.tasks) - 1
            result = step.freeze(task_id or self.options.get("task_id") if last else None)
            result.parent = parent
            parent = result
        return result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Submit it; the same as `apply_async`, as in Celery."""
        return self.apply_async(args, kwargs)

    def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Submit it; the result of its last step, whose `parent` is that of the one before."""
        if not self.tasks:
            return None
        if self.app.conf.task_always_eager:
            return self.apply(args, kwargs, **options)
        given = {name: value for name, value in options.items() if value is not None}
        return send(self.clone(args, kwargs, **given))

    def apply(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Run the steps in this process; a step that fails ends it."""
        parent = None
        given, given_kwargs = tuple(args or ()), kwargs
        for step in self.tasks:
            result = step.clone(given, given_kwargs).apply(**options)
            result.parent, parent = parent, result
            if not result.successful():
                break
            given, given_kwargs = (result.get(disable_sync_subtasks=False),), None
        return parent


def _plain(step: chain) -> bool:
    """Whether a chain inside a chain says nothing of its own, so that its steps can stand for it."""
    return not step.options
