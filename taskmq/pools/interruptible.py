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


def run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on a loop of its own; what it leaves behind is cancelled, as `asyncio.run` does.

    A soft limit is raised in whatever Python code runs at that moment, which is most often the loop,
    waiting. Then it is taken out of the loop and raised where the task waits.
    """
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        inside = Interruptible(coroutine)
        task = loop.create_task(_await(inside))
        while True:
            try:
                return loop.run_until_complete(task)
            except BaseException as exc:
                if task.done():
                    raise
                inside.interrupt(task, exc)
    finally:
        wind_up(loop)


async def _await(inside: Interruptible) -> Any:
    return await inside


def wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left on a loop, let it end, and close the loop."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
