"""The worker as the command line starts it: pool, coordinator, signals, banner, exit code."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from taskmq.errors import ConfigError, TransportCorrupt, TransportError
from taskmq.hooks import WorkerEvent
from taskmq.worker import beside, between, loop
from taskmq.worker.banner import banner, unenforceable
from taskmq.worker.building import build_pool
from taskmq.worker.coordinator import Coordinator
from taskmq.worker.exits import EXIT_CORRUPT, EXIT_USAGE
from taskmq.worker.naming import unique_name
from taskmq.worker.options import WorkerOptions, default_name
from taskmq.worker.parting import on_main_thread, part
from taskmq.worker.rules import resolve
from taskmq.worker.signals import signals_to

if TYPE_CHECKING:
    from taskmq.app import App

log = logging.getLogger("taskmq.worker")


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
            code = _run(coordinator)
        hooks.worker_stopped.send(event)
        log.info(
            "stopped: %s",
            coordinator.reporter.summary(),
            extra={"event": "worker.stopped", "exit_code": code},
        )
        part(coordinator, code)
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


def _run(coordinator: Coordinator) -> int:
    pool = coordinator.pool
    if pool.between_steps:
        return between.run(coordinator, may_exit=on_main_thread())
    if pool.needs_main_thread:
        return beside.run(coordinator, may_exit=on_main_thread())
    return loop.run(coordinator)
