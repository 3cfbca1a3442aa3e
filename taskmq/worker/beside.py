"""Running a coordinator on a thread of its own, beside a pool that needs the main one for itself."""

from __future__ import annotations

import logging
import threading

from taskmq.worker import loop
from taskmq.worker.coordinator import Coordinator
from taskmq.worker.exits import EXIT_FAILED
from taskmq.worker.parting import await_main_thread

log = logging.getLogger("taskmq.worker")


def run(coordinator: Coordinator, *, may_exit: bool) -> int:
    """The pool gets this thread, the coordinator one of its own; the exit code.

    With `may_exit` a task that does not return when the worker has stopped ends together with the process.
    """
    beside = _Beside(coordinator, may_exit=may_exit)
    beside.start()
    failed = False
    try:
        coordinator.pool.serve()
    except BaseException:
        # A task stopped the loop itself, say; nothing can run here any more.
        log.critical("the pool's main thread failed", exc_info=True)
        failed = True
    beside.main_thread_is_back.set()
    coordinator.stop("its main thread ended", at_once=True)
    beside.join()
    return EXIT_FAILED if failed else beside.code


class _Beside(threading.Thread):
    """The coordinator's thread. Ends the process when a task keeps the main one after its hand-back."""

    def __init__(self, coordinator: Coordinator, *, may_exit: bool) -> None:
        super().__init__(name="taskmq-coordinator", daemon=True)
        self.code = EXIT_FAILED
        self.main_thread_is_back = threading.Event()
        self._coordinator = coordinator
        self._may_exit = may_exit

    def run(self) -> None:
        try:
            self.code = loop.run(self._coordinator)
        except BaseException:
            log.critical("the coordinator failed", exc_info=True)
            self._coordinator.pool.stop(hand_back=False)
        await_main_thread(
            self._coordinator, self.main_thread_is_back, self.code, may_exit=self._may_exit
        )
