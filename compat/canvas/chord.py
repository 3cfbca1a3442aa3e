"""`chord`: a group (the header), then one call with the list of its results (the body)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmq.compat.canvas.group import group
from taskmq.compat.canvas.native import send
from taskmq.compat.canvas.signature import Signature, maybe_signature
from taskmq.compat.exceptions import ChordError, ImproperlyConfigured
from taskmq.ids import uuid

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("chord",)


class chord(Signature):  # noqa: N801 - Celery's name
    """`chord(header, body)`, or `chord(header)(body)` to submit it.

    The body gets the results in the order of the header; without members it gets `[]`. A member that does
    not succeed fails the body.
    """

    def __init__(
        self, header: Any, body: Any = None, app: Celery | None = None, **options: Any
    ) -> None:
        options = {**options.pop("options", {}), **options}
        head = header if isinstance(header, group) else group(header, app=app)
        tail = maybe_signature(body, app=app)
        super().__init__(
            "celery.chord",
            (),
            {"header": head, "body": tail},
            options,
            subtask_type="chord",
            app=app or head._app or (tail._app if tail is not None else None),
        )

    @classmethod
    def _from(cls, d: Any, app: Celery | None) -> chord:
        kwargs = d["kwargs"]
        header = kwargs["header"]
        if isinstance(header, dict):
            header = Signature.from_dict(header, app=app)
        else:
            header = [maybe_signature(task, app=app) for task in header]
        made = cls(header, kwargs.get("body"), app=app, **(d.get("options") or {}))
        made["immutable"] = bool(d.get("immutable"))
        return made

    @property
    def tasks(self) -> group:
        """The header."""
        found: group = self.kwargs["header"]
        return found

    header = tasks

    @property
    def body(self) -> Any:
        """The call that gets the results."""
        return self.kwargs["body"]

    def reprcall(self, *args: Any, **kwargs: Any) -> str:
        return f"%{self.body!r}({self.tasks.tasks!r})"

    def clone(self, args: Any = None, kwargs: Any = None, **options: Any) -> chord:
        """A copy; more arguments go to the members of the header."""
        body = self.body.clone() if self.body is not None else None
        header = self.tasks.clone(args, kwargs)
        return chord(header, body, app=self._app, **{**self.options, **options})

    def link(self, callback: Any) -> Any:
        """Call this with the result of the body."""
        self._body().link(callback)
        return callback

    def link_error(self, errback: Any) -> Any:
        """Call this once when the body fails, or a member of the header."""
        self._body().link_error(errback)
        return errback

    def freeze(self, task_id: str | None = None, **kwargs: Any) -> Any:
        """Settle the ids; returns the result of the body, whose `parent` is the header's."""
        header = self.tasks.freeze()
        result = self._body().freeze(task_id or self.options.get("task_id"))
        result.parent = header
        return result

    def __call__(self, body: Any = None, **options: Any) -> Any:
        """Submit it, with this body if one is given."""
        return self.apply_async((), {}, body=body, **options)

    def apply_async(
        self, args: Any = None, kwargs: Any = None, body: Any = None, **options: Any
    ) -> Any:
        """Submit it; the result of the body, whose `parent` is the header's."""
        given = {name: value for name, value in options.items() if value is not None}
        copied = self.clone(args, kwargs, **given)
        if body is not None:
            copied.kwargs["body"] = maybe_signature(body, app=self._app)
        copied._body()
        if self.app.conf.task_always_eager:
            return copied.apply()
        return send(copied)

    def apply(self, args: Any = None, kwargs: Any = None, body: Any = None, **options: Any) -> Any:
        """Run header and body in this process."""
        from taskmq.compat import states
        from taskmq.compat.result import EagerResult

        body = self._body() if body is None else maybe_signature(body, app=self._app)
        header = self.tasks.apply(args, kwargs)
        failed = next((result for result in header if not result.successful()), None)
        if failed is not None:
            error = ChordError(f"Dependency {failed.id} raised {failed.result!r}")
            return EagerResult(body.id or uuid(), error, states.FAILURE, name=body.task)
        values = [result.get(disable_sync_subtasks=False) for result in header]
        result = body.clone((values,)).apply(**options)
        result.parent = header
        return result

    def _body(self) -> Any:
        if self.body is None:
            raise ImproperlyConfigured("chord: no body; chord(header, body) or chord(header)(body)")
        return self.body
