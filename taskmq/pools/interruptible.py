"""A coroutine into which the soft limit can be raised as what it is, not as a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


class Interruptible:
    """Awaits a coroutine; `interrupt` makes its current `await` raise an exception of our choice.

    asyncio can only cancel. So the task is cancelled, and on its way into the coroutine the
    cancellation is replaced. A second, real cancellation passes through as it is.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._error: BaseException | None = None

    def interrupt(self, task: asyncio.Task[Any], error: BaseException) -> None:
        """Raise `error` inside; on the loop of `task`, which awaits this."""
        self._error = error
        task.cancel()

    def __await__(self) -> Generator[Any, None, Any]:
        inner = self._coroutine.__await__()
        error: BaseException | None = None
        while True:
            try:
                waiting = inner.send(None) if error is None else inner.throw(error)
            except StopIteration as stop:
                return stop.value
            try:
                yield waiting
            except asyncio.CancelledError as exc:
                error = self._instead_of(exc)
            except BaseException as exc:
                # GeneratorExit too: the coroutine gets to run its finally blocks.
                error = exc
            else:
                error = None

    def _instead_of(self, cancelled: BaseException) -> BaseException:
        error, self._error = self._error, None
        if error is None:
            return cancelled
        uncancel = getattr(asyncio.current_task(), "uncancel", None)
        if uncancel is not None:
            # From Python 3.11 on timeouts and task groups count the cancellations of their task.
            uncancel()
        return error
