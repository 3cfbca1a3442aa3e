"""Running a coordinator and its pool's tasks on one thread in turn, with a keeper for long tasks.

A short task costs no hand-over: the step after it settles it and reserves the next. What a coordinator owes
while a task is long (leases, commands, limits, the drain deadline) the keeper does in its place.
"""

from __future__ import annotations

import logging
import threading

from taskmq.worker import loop
from taskmq.worker.baton import Baton
from taskmq.worker.coordinator import Coordinator
from taskmq.worker.exits import EXIT_FAILED
from taskmq.worker.parting import await_main_thread
from taskmq.worker.stopping import Stage

log = logging.getLogger("taskmq.worker")

#: Seconds a task may run before the keeper takes over; it does so within twice that time.
GRACE = 0.01


def run(coordinator: Coordinator, *, may_exit: bool) -> int:
    """Step until the worker has stopped, and run its tasks on this thread; the exit code.

    Opens and closes the coordinator. With `may_exit` a task that does not return when the worker has
    stopped ends together with the process.
    """
    between = _Between(coordinator, may_exit=may_exit)
    keeper = threading.Thread(target=between.keep, name="taskmq-keeper", daemon=True)
    keeper.start()
    try:
        between.run()
    finally:
        between.baton.retire()
        keeper.join()
    return coordinator.exit_code


class _Between:
    """The coordinator is touched only by whoever holds the baton."""

    def __init__(self, coordinator: Coordinator, *, may_exit: bool) -> None:
        self.baton = Baton(coordinator.bell.ring)
        self._coordinator = coordinator
        self._may_exit = may_exit

    # -- the thread that runs tasks -----------------------------------------------------------------

    def run(self) -> None:
        """Step and run tasks until the worker has stopped."""
        try:
            self._coordinator.open()
            self._alternate()
        except BaseException:
            self._fail()
        self._close()

    def _alternate(self) -> None:
        coordinator = self._coordinator
        while not self._stopped():
            coordinator.step()
            if self._stopped():
                return  # what was dispatched and has not begun comes back with its lease
            task = coordinator.pool.take()
            if task is not None:
                try:
                    self.baton.without(task)
                except BaseException:
                    self._stop_at_once()
            elif not coordinator.again:
                loop.wait(coordinator)

    def _stop_at_once(self) -> None:
        # Something hit between the task and us; whether the next one can run nobody knows.
        log.critical("the pool's main thread failed", exc_info=True)
        self._coordinator.exit_code = EXIT_FAILED
        self._coordinator.stop("its main thread failed", at_once=True)

    # -- the keeper's thread ------------------------------------------------------------------------

    def keep(self) -> None:
        """Drive in the place of a thread that is in a long task, until there are no more tasks."""
        while (task := self.baton.long_task(GRACE)) is not None:
            if self.baton.take_over(task):
                try:
                    if self._drive():
                        return
                finally:
                    self.baton.give_up()

    def _drive(self) -> bool:
        """Until the task has ended; whether the worker has stopped."""
        coordinator, asked_back = self._coordinator, self.baton.asked_back
        try:
            while not asked_back.is_set() and not self._stopped():
                coordinator.step()
                # In this order: the step may have taken the ring that says so.
                if not coordinator.again and not asked_back.is_set():
                    loop.wait(coordinator)
            if not self._stopped():
                return False
        except BaseException:
            self._fail()
        self._close()
        await_main_thread(coordinator, asked_back, coordinator.exit_code, may_exit=self._may_exit)
        return True

    # -- either -------------------------------------------------------------------------------------

    def _stopped(self) -> bool:
        return self._coordinator.stage is Stage.STOPPED

    def _fail(self) -> None:
        log.critical("the coordinator failed", exc_info=True)
        self._coordinator.exit_code = EXIT_FAILED
        self._coordinator.pool.stop(hand_back=False)
        self._coordinator.ladder.stopped()

    def _close(self) -> None:
        try:
            self._coordinator.close()
        except BaseException:
            self._fail()
