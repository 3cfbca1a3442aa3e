"""The half of `Task` that belongs to an app: which one, and what the app's settings say of the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from taskmq.compat._state import get_current_app

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("BoundToApp",)

#: Attributes that take their value from a setting where a task does not set them.
_FROM_CONF = (
    ("serializer", "task_serializer"),
    ("rate_limit", "task_default_rate_limit"),
    ("track_started", "task_track_started"),
    ("acks_late", "task_acks_late"),
    ("reject_on_worker_lost", "task_reject_on_worker_lost"),
    ("ignore_result", "task_ignore_result"),
    ("store_eager_result", "task_store_eager_result"),
    ("store_errors_even_if_ignored", "task_store_errors_even_if_ignored"),
)


class _AppOf:
    """`Task.app`, on the class and on its instances: the app it is bound to, else the current one."""

    def __get__(self, instance: BoundToApp | None, owner: type[BoundToApp]) -> Celery:
        return owner._get_app()

    def __set__(self, instance: BoundToApp, app: Celery) -> None:
        type(instance).bind(app)


class BoundToApp:
    """Belongs to the app it was bound to, else to the current one."""

    name: Any = None
    typing: Any = None

    app = _AppOf()
    _app: ClassVar[Celery | None] = None

    @classmethod
    def _get_app(cls) -> Celery:
        if cls._app is None:
            return get_current_app()
        return cls._app

    @classmethod
    def bind(cls, app: Celery) -> Celery:
        """Make this the class of a task of `app`, and fill in what its settings say."""
        was = cls.__dict__.get("_app")
        cls._app = app
        if cls.typing is None:
            cls.typing = app.strict_typing
        for attribute, setting in _FROM_CONF:
            if getattr(cls, attribute, None) is None:
                setattr(cls, attribute, app.conf[setting])
        if was is not app:
            cls.annotate()
            cls.on_bound(app)
        return app

    @classmethod
    def on_bound(cls, app: Celery) -> None:
        """Called once the class belongs to an app; for subclasses."""

    @classmethod
    def annotate(cls) -> None:
        """Set the attributes that `task_annotations` names for this task."""
        for annotation in cls._get_app().annotations_for(cls):
            for attribute, value in annotation.items():
                if attribute.startswith("@"):
                    setattr(cls, attribute[1:], value(getattr(cls, attribute[1:])))
                else:
                    setattr(cls, attribute, value)
