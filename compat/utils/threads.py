"""A stack of its own for every thread and every coroutine."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

__all__ = ("LocalStack",)


class LocalStack:
    """Push, pop and look at the top; each thread and each asyncio task sees only its own.

    A context variable instead of a thread local: coroutines of one thread run interleaved, and each
    must find its own request.
    """

    def __init__(self, name: str = "stack") -> None:
        self._items: ContextVar[tuple[Any, ...]] = ContextVar(name)

    def push(self, item: Any) -> None:
        """Put an item on top."""
        self._items.set((*self.stack, item))

    def pop(self) -> Any:
        """Take the top item off; None when the stack is empty."""
        items = self.stack
        if not items:
            return None
        self._items.set(items[:-1])
        return items[-1]

    @property
    def top(self) -> Any:
        """The top item, or None."""
        items = self.stack
        return items[-1] if items else None

    @property
    def stack(self) -> tuple[Any, ...]:
        """All items, the top one last."""
        return self._items.get(())

    def __len__(self) -> int:
        return len(self.stack)
