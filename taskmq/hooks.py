"""Typed hooks: signals that application and extensions connect to, and middleware around a run.

A signal carries one frozen value; a receiver that raises is logged and never stops the sender. A
middleware is `(call_next, context) -> value` composed around the task's function in the process that
runs it. Misspelt names are attribute errors, not silence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from taskmq.message import Delivery, Message
    from taskmq.states import State

log = logging.getLogger("taskmq.hooks")

E = TypeVar("E")
Receiver = Callable[[E], object]
Middleware = Callable[[Callable[[], Any], Any], Any]


class Signal(Generic[E]):
    """A list of receivers, called in order of connection, in the sender's thread."""

    __slots__ = ("_receivers", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._receivers: list[Receiver[E]] = []

    def connect(self, receiver: Receiver[E]) -> Receiver[E]:
        """Add a receiver; usable as a decorator. Connecting twice calls it once."""
        if receiver not in self._receivers:
            self._receivers.append(receiver)
        return receiver

    def disconnect(self, receiver: Receiver[E]) -> bool:
        """Remove a receiver; False when it was not connected."""
        try:
            self._receivers.remove(receiver)
        except ValueError:
            return False
        return True

    def __bool__(self) -> bool:
        return bool(self._receivers)

    def send(self, event: E) -> None:
        """Call every receiver with the event."""
        for receiver in list(self._receivers):
            try:
                receiver(event)
            except Exception:
                log.exception("a receiver of %s failed; the others are called", self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One run of a task, before or after, in the process that runs it."""

    context: Any
    task: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    state: State | None = None
    value: Any = None
    exception: BaseException | None = None
    traceback: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEvent:
    """A moment of a worker's life, in its own process."""

    worker: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOffEvent:
    """A run that ended without its own process saying how, as the worker saw it.

    The process died, or the hard limit or a revoke stopped it: no `after_run` comes. `state` is how the task
    ended, None when it is delivered again.
    """

    delivery: Delivery
    state: State | None
    error: str


class Hooks:
    """The hooks of one app."""

    def __init__(self) -> None:
        # in the producer
        self.before_submit: Signal[Message] = Signal("before_submit")
        self.after_submit: Signal[Message] = Signal("after_submit")
        # in the process that runs the task
        self.before_run: Signal[RunEvent] = Signal("before_run")
        self.after_run: Signal[RunEvent] = Signal("after_run")
        self.child_init: Signal[Any] = Signal("child_init")
        self.child_exit: Signal[Any] = Signal("child_exit")
        # in the worker process
        self.worker_init: Signal[WorkerEvent] = Signal("worker_init")
        self.worker_ready: Signal[WorkerEvent] = Signal("worker_ready")
        self.worker_stopping: Signal[WorkerEvent] = Signal("worker_stopping")
        self.worker_stopped: Signal[WorkerEvent] = Signal("worker_stopped")
        self.task_received: Signal[Delivery] = Signal("task_received")
        self.task_lost: Signal[Delivery] = Signal("task_lost")
        self.run_cut_off: Signal[CutOffEvent] = Signal("run_cut_off")
        self.middleware: list[Middleware] = []
        # what a layer above finds odd in the project; `taskmq doctor` and `taskmq config check` print it
        self.advisers: list[Callable[[], Iterable[str]]] = []

    def around(self, call: Callable[[], Any], context: Any) -> Callable[[], Any]:
        """`call` wrapped by the middleware, the first added outermost."""
        for wrap in reversed(self.middleware):
            call = _bind(wrap, call, context)
        return call


def _bind(wrap: Middleware, call: Callable[[], Any], context: Any) -> Callable[[], Any]:
    return lambda: wrap(call, context)
