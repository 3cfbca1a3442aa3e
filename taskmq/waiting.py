"""Awaiting results: one thread of an app waits for all that its event loops await.

A thread for each awaited result would fill an event loop's default executor with a handful of them.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.message import ResultRecord

# How long the thread waits for the ids it knows before it takes up new ones.
_STEP = 0.05

_Waiting = tuple[asyncio.AbstractEventLoop, "asyncio.Future[ResultRecord]"]


class Waiter:
    """Turns final records into finished futures. Any thread may ask; the thread ends when nobody does."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._waiting: dict[str, list[_Waiting]] = {}
        self._running = False

    async def record(self, task_id: str, timeout: float) -> ResultRecord | None:
        """The final record of a task, None after `timeout` seconds. Raises what the store raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ResultRecord] = loop.create_future()
        waiting = (loop, future)
        self._add(task_id, waiting)
        try:
            # asyncio.wait leaves the future alone at a timeout, unlike wait_for.
            await asyncio.wait((future,), timeout=timeout)
            return future.result() if future.done() else None
        finally:
            self._drop(task_id, waiting)

    def _add(self, task_id: str, waiting: _Waiting) -> None:
        if self._pid != os.getpid():
            self._reset()  # the thread stayed in the parent
        with self._lock:
            self._waiting.setdefault(task_id, []).append(waiting)
            if self._running:
                return
            self._running = True
        threading.Thread(target=self._run, name="taskmq-results", daemon=True).start()

    def _drop(self, task_id: str, waiting: _Waiting) -> None:
        with self._lock:
            left = self._waiting.get(task_id, [])
            if waiting in left:
                left.remove(waiting)
            if not left:
                self._waiting.pop(task_id, None)

    def _run(self) -> None:
        while True:
            with self._lock:
                task_ids = list(self._waiting)
                if not task_ids:
                    self._running = False
                    return
            try:
                found = self._app.results.wait(task_ids, _STEP)
            except Exception as exc:
                # Nobody would hear of it in this thread; whoever awaits does.
                self._tell(task_ids, _set_error, exc)
                continue
            for task_id, record in found.items():
                self._tell((task_id,), _set_record, record)

    def _tell(self, task_ids: Iterable[str], how: Callable[..., None], what: Any) -> None:
        with self._lock:
            told = [waiting for task_id in task_ids for waiting in self._waiting.pop(task_id, ())]
        for loop, future in told:
            try:
                loop.call_soon_threadsafe(how, future, what)
            except RuntimeError:
                pass  # its event loop was closed while it awaited


def _set_record(future: asyncio.Future[ResultRecord], record: ResultRecord) -> None:
    if not future.done():
        future.set_result(record)


def _set_error(future: asyncio.Future[ResultRecord], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
