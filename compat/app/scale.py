"""The direction of the numbers a project writes for priorities, and the engine's.

TaskMQ's is larger = more urgent, -9..9, on every transport. A project that was written for Celery on Redis
(0 = most urgent, 9 = least) says so once: `task_priority_scale = "celery-redis"`. Nothing is guessed from a
broker URL, clamped or rounded (P1).
"""

from __future__ import annotations

from typing import Any

from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.errors import ConfigError, PriorityError, nearest
from taskmq.priority import check_priority, declare_priority

__all__ = ("Scale", "SCALES")

SCALES = ("taskmq", "celery-redis")


class Scale:
    """Turns a project's priorities into the engine's, and back for `request.delivery_info`."""

    __slots__ = ("inverted", "name")

    def __init__(self, name: Any) -> None:
        if name not in SCALES:
            raise ImproperlyConfigured(
                f"task_priority_scale: one of {', '.join(SCALES)}, got {name!r}.{nearest(str(name), SCALES)}"
            )
        self.name = name
        self.inverted = name == "celery-redis"

    def declared(self, value: Any, where: str) -> int | None:
        """The engine's priority of a declaration (task, setting); `ConfigError` out of range."""
        if value is None:
            return None
        if self.inverted and _is_int(value) and not 0 <= value <= 9:
            raise ConfigError(_outside(value, where))
        level = declare_priority(value, where)
        return -level if self.inverted else level

    def given(self, value: Any, where: str) -> int | None:
        """The engine's priority of a call; `PriorityError` out of range, and nothing is submitted."""
        if value is None:
            return None
        if self.inverted and _is_int(value) and not 0 <= value <= 9:
            raise PriorityError(_outside(value, where))
        level = check_priority(value, where)
        return -level if self.inverted else level

    def out(self, level: int) -> int:
        """The project's number for an engine's priority."""
        return -level if self.inverted else level


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _outside(value: int, where: str) -> str:
    return (
        f"{where}: priority {int(value)} is out of range; task_priority_scale='celery-redis' accepts 0..9 "
        "(0 = most urgent); it is not clamped"
    )
