"""What a failure hook gets besides the exception: its traceback, as text and as an object."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from taskmq.codec import format_traceback

__all__ = ("ExceptionInfo",)


class ExceptionInfo:
    """`exception`, `type`, `traceback` (text), `tb` (the object, None after a process boundary)."""

    #: Whether the worker itself failed and not the task.
    internal = False

    def __init__(self, exception: BaseException, traceback: str | None = None) -> None:
        self.exception = exception
        self.type = type(exception)
        self.tb: TracebackType | None = exception.__traceback__
        self.traceback = traceback if traceback is not None else format_traceback(exception)

    def __str__(self) -> str:
        return self.traceback

    def __repr__(self) -> str:
        return f"<ExceptionInfo: {self.exception!r}>"

    @property
    def exc_info(self) -> tuple[Any, Any, Any]:
        """(type, exception, traceback object), as `sys.exc_info()` gives it."""
        return self.type, self.exception, self.tb
