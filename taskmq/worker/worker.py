"""The worker as the command line starts it: pool, coordinator, signals, banner, exit code."""

from __future__ import annotations

import logging
import os
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

from taskmq.errors import ConfigError, TransportCorrupt, TransportError
from taskmq.hooks import WorkerEvent
from taskmq.worker import loop
from taskmq.worker.banner import banner, unenforceable
from taskmq.worker.building import build_pool
from taskmq.worker.coordinator import Coordinator
from taskmq.worker.exits import EXIT_CORRUPT, EXIT_FAILED, EXIT_USAGE
from taskmq.worker.naming import unique_name
from taskmq.worker.options import WorkerOptions, default_name
from taskmq.worker.rules import resolve
from taskmq.worker.signals import signals_to

if TYPE_CHECKING:
    from taskmq.app import App

log = logging.getLogger("taskmq.worker")

# How long the main thread has to return once the coordinator is done, where tasks run on it.
_MAIN_THREAD_GRACE = 2.0
# How often leases are looked at meanwhile.
_KEEP_EVERY = 0.1


class Worker:
    """Consumes queues until it is told to stop.

    Raises `ConfigError` for options and settings that do not fit, and `TransportError` when the
    transport cannot be opened; `run` turns both into an exit code.
    """

    def __init__(self, app: App, options: WorkerOptions | None = None) -> None:
        self.app = app
        self.options = options or WorkerOptions()
        self.coordinator: Coordinator | None = None
        self._stop_asked: str | None = None

    def stop(self, reason: str = "stop()", *, at_once: bool = False) -> None:
        """Drain and stop, as TERM does; from any thread."""
        if self.coordinator is not None:
            self.coordinator.stop(reason, at_once=at_once)
        else:
            self._stop_asked = reason

    def run(self) -> int:
        """Work until stopped; the exit code (`taskmq.worker.exits`).

        On the main thread TERM, INT and HUP drain; a second one, or QUIT, stops now. There a task that no
        thread can stop ends together with the process, which `run` then leaves itself.
        """
        try:
            coordinator = self.prepare()
        except ConfigError as exc:
            log.critical("%s", exc, extra={"event": "worker.refused"})
            return EXIT_USAGE
        except TransportCorrupt as exc:
            log.critical("%s", exc, extra={"event": "transport.corrupt"})
            return EXIT_CORRUPT
        except TransportError as exc:
            log.critical("the transport cannot be opened: %s", exc)
            return EXIT_USAGE
        hooks = self.app.hooks
        event = WorkerEvent(worker=self)
        hooks.worker_init.send(event)
        coordinator.on_draining = lambda: hooks.worker_stopping.send(event)
        for line in banner(self.app, coordinator.transport, coordinator.pool, coordinator.rules):
            log.info("%s", line, extra={"event": "worker.banner"})
        if not self.app.config.remote_control:
            log.info("no control commands are taken (remote_control is off)")
        for line in unenforceable(self.app, coordinator.pool, coordinator.rules):
            log.warning("%s", line, extra={"event": "pool.cannot_enforce"})
        with signals_to(coordinator.bell):
            hooks.worker_ready.send(event)
            if coordinator.pool.needs_main_thread:
                code = self._run_beside(coordinator)
            else:
                code = loop.run(coordinator)
        hooks.worker_stopped.send(event)
        log.info("stopped", extra={"event": "worker.stopped", "exit_code": code})
        _part(coordinator, code)
        return code

    def prepare(self) -> Coordinator:
        """Build the pool and the coordinator, and open the transport."""
        options = self.options
        transport = self.app.transport
        with unique_name(transport, options.name or default_name()) as name:
            rules = resolve(self.app.config, options, name)
            pool = build_pool(self.app, options, rules)
            self.coordinator = Coordinator(
                self.app,
                pool,
                rules,
                control=options.control,
                heartbeat=options.heartbeat,
                maintenance=options.maintenance,
            )
            # From here on the row says who has the name.
            self.coordinator.chores.tell()
        if self._stop_asked is not None:
            self.coordinator.stop(self._stop_asked)
        return self.coordinator

    def _run_beside(self, coordinator: Coordinator) -> int:
        """Tasks get this thread, the coordinator one of its own."""
        beside = _Beside(coordinator, may_exit=_on_main_thread())
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
        pool = self._coordinator.pool
        grace = pool.exit_grace if pool.unstopped() else _MAIN_THREAD_GRACE
        if not self._wait(grace) and self._may_exit:
            _exit_with_tasks(self._coordinator, self.code)

    def _wait(self, seconds: float) -> bool:
        """For the main thread, keeping what is not handed back yet."""
        end = self._coordinator.clock.monotonic() + seconds
        while (left := end - self._coordinator.clock.monotonic()) > 0:
            if self.main_thread_is_back.wait(min(left, _KEEP_EVERY)):
                return True
            self._coordinator.keep()
        return self.main_thread_is_back.is_set()


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _part(coordinator: Coordinator, code: int) -> None:
    """Hand back what the pool could not stop: once it is over, else together with the process."""
    if not coordinator.pool.unstopped():
        coordinator.hand_back()
    elif _on_main_thread():
        _exit_with_tasks(coordinator, code)
    else:
        # Whoever runs a worker on a thread goes on, and so does the task: its lease has to end.
        log.warning("a task goes on in a worker that has stopped; its message is not handed back")


def _exit_with_tasks(coordinator: Coordinator, code: int) -> NoReturn:
    """End the process while tasks run in it. Their messages go back at the last moment."""
    log.warning("a task that cannot be stopped still runs; the process exits now")
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # a task closed it
    try:
        coordinator.hand_back()
    finally:
        os._exit(code)
