"""What a task may have done to its process's signals, undone before the next one.

Handlers, the wake-up descriptor, the mask of the main thread and the interval timers belong to the
process: a child and a worker that runs tasks on its own main thread answer to nobody once a task
keeps them.
"""

from __future__ import annotations

import faulthandler
import importlib
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: Signals a terminal or a service manager sends to the whole group.
GROUP_SIGNALS = frozenset(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
)
#: With those that tasks and libraries use.
ALL_SIGNALS = GROUP_SIGNALS | {
    getattr(signal, name)
    for name in ("SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGPIPE")
    if hasattr(signal, name)
}

_TIMERS = tuple(
    getattr(signal, name)
    for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
    if hasattr(signal, name)
)
_IDLE = (0.0, 0.0)

# The function below `signal.getsignal`, which converts to enum members: nine of those cost as much as
# running an empty task.
_handler_of: Callable[[int], Any] = getattr(
    importlib.import_module("_signal"), "getsignal", signal.getsignal
)
_masks = hasattr(signal, "pthread_sigmask")

# What we hear by; the tracebacks a project wants at other signals stay.
_OURS = GROUP_SIGNALS | {getattr(signal, "SIGUSR1", signal.SIGTERM)}
_unregister: Callable[[int], bool] = getattr(faulthandler, "unregister", lambda number: False)


class Handlers:
    """The signals of a process as they were at `remember`, put back by `restore`.

    Only the main thread may do either; on another one neither does anything. `timers` says whether
    interval timers are stopped as well.
    """

    def __init__(self, numbers: Iterable[int] = ALL_SIGNALS, *, timers: bool = True) -> None:
        self._numbers = tuple(numbers)
        self._ours = tuple(_OURS.intersection(self._numbers))
        self._timers = _TIMERS if timers else ()
        self._handlers: dict[int, Any] | None = None
        self._mask: set[Any] = set()
        self._wakeup = -1

    def remember(self) -> None:
        """What `restore` goes back to."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._handlers = {number: _handler_of(number) for number in self._numbers}
        self._take_back(self._handlers)
        if _masks:
            self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._wakeup = signal.set_wakeup_fd(-1)
        self._set_wakeup()

    def restore(self) -> None:
        """Undo what a task did; paid after every task, so nothing is set that has not changed."""
        if self._handlers is None:
            return
        # The timers first: one that fires once the task's handler is gone would end the process.
        for timer in self._timers:
            if signal.getitimer(timer) != _IDLE:
                signal.setitimer(timer, 0)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ()) if _masks else self._mask
        if blocked != self._mask:
            self._drop_pending(blocked - self._mask)
        for number, handler in self._handlers.items():
            # None is a handler that C code installed: it cannot be put back, and was not ours.
            if handler is not None and _handler_of(number) is not handler:
                signal.signal(number, handler)
        self._take_back(self._handlers)
        if blocked != self._mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        self._set_wakeup()

    def _take_back(self, handlers: Mapping[int, Any]) -> None:
        """Undo `faulthandler.register`, which Python knows nothing of: for it nothing has changed."""
        for number in self._ours:
            if _unregister(number):
                signal.signal(number, handlers[number] or signal.SIG_DFL)

    def _drop_pending(self, blocked: set[Any]) -> None:
        """Of the task's own signals what it left undelivered; the worker's own are still to come."""
        if not hasattr(signal, "sigtimedwait"):  # macOS
            return
        own = blocked - GROUP_SIGNALS
        while own & signal.sigpending():
            signal.sigtimedwait(own, 0)

    def _set_wakeup(self) -> None:
        try:
            signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        except (OSError, ValueError):
            pass  # a task closed it; there is nothing to put back
