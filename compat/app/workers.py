"""Where a Celery app meets the worker: the engine's hooks as Celery's signals, and starting one."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from taskmq.compat import signals
from taskmq.compat._einfo import ExceptionInfo
from taskmq.compat.app.adapter import leave_run
from taskmq.compat.app.request import Context, request_of
from taskmq.compat.app.support import findings
from taskmq.compat.exceptions import (
    ImproperlyConfigured,
    TimeLimitExceeded,
    WorkerLostError,
    caught_as_billiard,
)
from taskmq.compat.utils.log import name_tasks, task_logger
from taskmq.home import main_module_name
from taskmq.states import State

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.compat.app.base import Celery
    from taskmq.compat.app.task import Task
    from taskmq.hooks import CutOffEvent, Hooks, WorkerEvent
    from taskmq.message import Delivery

__all__ = ("WorkerHandle", "connect", "worker_main", "start")

log = logging.getLogger("taskmq.compat")


class WorkerHandle:
    """What signals of a worker have as their sender: `sender.app`, `sender.hostname`, `sender.pid`."""

    def __init__(self, app: Celery, worker: Any) -> None:
        self.app = app
        #: The engine's worker.
        self.taskmq_worker = worker
        coordinator = getattr(worker, "coordinator", None)
        self.hostname = coordinator.rules.name if coordinator is not None else ""
        self.pid = os.getpid()
        self.concurrency = coordinator.rules.slots if coordinator is not None else None

    def __repr__(self) -> str:
        return f"<Worker: {self.hostname}>"


def connect(app: Celery, engine: App) -> None:
    """Have the engine's hooks call the tasks' own and send Celery's signals."""
    hooks = engine.hooks
    told = _Told(app, hooks)
    hooks.advisers.append(lambda: findings(app))
    hooks.after_run.connect(leave_run)
    hooks.child_init.connect(told.child_init)
    hooks.child_exit.connect(told.child_exit)
    hooks.worker_init.connect(told.worker_init)
    hooks.worker_ready.connect(told.worker_ready)
    hooks.worker_stopping.connect(told.worker_stopping)
    hooks.worker_stopped.connect(told.worker_stopped)
    hooks.run_cut_off.connect(told.run_cut_off)
    told.listen()


class _Told:
    """The receivers of one app."""

    def __init__(self, app: Celery, hooks: Hooks) -> None:
        self.app = app
        self._hooks = hooks

    def listen(self) -> None:
        """Pass received tasks on, where somebody listens by now: else the worker does less for each."""
        if signals.task_received:
            self._hooks.task_received.connect(self.task_received)

    def child_init(self, event: Any) -> None:
        self.app.set_current()
        name_tasks()
        signals.worker_process_init.send(sender=None)

    def child_exit(self, event: Any) -> None:
        signals.worker_process_shutdown.send(sender=None, pid=os.getpid(), exitcode=0)

    def worker_init(self, event: WorkerEvent) -> None:
        sender = WorkerHandle(self.app, event.worker)
        _set_up_logging()
        name_tasks()
        for line in findings(self.app):
            log.warning("%s", line)
        signals.celeryd_init.send(
            sender=sender.hostname, instance=sender, conf=self.app.conf, options={}
        )
        signals.worker_init.send(sender=sender)
        signals.celeryd_after_setup.send(
            sender=sender.hostname, instance=sender, conf=self.app.conf
        )
        self.listen()

    def worker_ready(self, event: WorkerEvent) -> None:
        signals.worker_ready.send(sender=WorkerHandle(self.app, event.worker))

    def worker_stopping(self, event: WorkerEvent) -> None:
        sender = WorkerHandle(self.app, event.worker)
        signals.worker_shutting_down.send(
            sender=sender.hostname, sig=signal.SIGTERM.name, how="Warm", exitcode=0
        )

    def worker_stopped(self, event: WorkerEvent) -> None:
        signals.worker_shutdown.send(sender=WorkerHandle(self.app, event.worker))

    def task_received(self, delivery: Delivery) -> None:
        signals.task_received.send(sender=None, request=self._request(delivery))

    def run_cut_off(self, event: CutOffEvent) -> None:
        """A child died with this task, or was stopped: its hook and signal, in the worker as in Celery."""
        delivery = event.delivery
        task = self.app.tasks.get(delivery.message.task)
        if task is None or event.state is None:
            # Delivered again: it has not ended.
            return
        if event.state is State.REVOKED:
            signals.task_revoked.send(
                sender=task,
                request=self._request(delivery),
                terminated=True,
                signum=signal.SIGTERM,
                expired=False,
            )
            return
        self._failed(task, delivery, _error(event))

    def _failed(self, task: Task, delivery: Delivery, exc: Exception) -> None:
        task_id = delivery.message.task_id
        einfo = ExceptionInfo(exc)
        args, kwargs = self._arguments(delivery)
        try:
            task.on_failure(exc, task_id, args, kwargs, einfo)
        except Exception:
            log.exception("on_failure of task %s[%s] failed", task.name, task_id)
        signals.task_failure.send(
            sender=task,
            task_id=task_id,
            exception=exc,
            args=args,
            kwargs=kwargs,
            traceback=None,
            einfo=einfo,
        )

    def _request(self, delivery: Delivery) -> Context:
        message = delivery.message
        request = request_of(message, None, None, self.app.scale, deliveries=delivery.deliveries)
        request.update(name=message.task, task_name=message.task)
        return request

    def _arguments(self, delivery: Delivery) -> tuple[Any, Any]:
        message = delivery.message
        try:
            args, kwargs, _ = self.app.engine.codec.decode_body(
                message.body, message.content_type, message.content_encoding
            )
        except Exception:
            log.exception("the arguments of a lost task cannot be read")
            return (), {}
        return tuple(args), kwargs


def _error(event: CutOffEvent) -> Exception:
    """Celery's exception for what the engine says of a run that was cut off."""
    name, _, text = event.error.partition(": ")
    kind = TimeLimitExceeded if name == "TimeLimitExceeded" else WorkerLostError
    return caught_as_billiard(kind)(text or event.error)


def _set_up_logging() -> None:
    """Let the project set logging up in Celery's way, after `taskmq worker` has done so in its own."""
    root = logging.getLogger()
    common: dict[str, Any] = {
        "loglevel": root.level,
        "logfile": None,
        "format": None,
        "colorize": False,
    }
    if signals.setup_logging:
        signals.setup_logging.send(sender=None, **common)
        return
    signals.after_setup_logger.send(sender=None, logger=root, **common)
    signals.after_setup_task_logger.send(sender=None, logger=task_logger, **common)


def worker_main(app: Celery, argv: list[str] | None) -> None:
    """`taskmq -A <this app> worker …` in this process; exits with its code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if "worker" not in arguments:
        raise ValueError(
            "the worker sub-command must be specified in argv, as in app.worker_main(['worker'])"
        )
    start(app, arguments)


def start(app: Celery, argv: list[str] | None) -> None:
    """`taskmq -A <this app> …` in this process; exits with its code."""
    from taskmq.cli.main import main
    from taskmq.compat.alias import is_installed

    arguments = list(sys.argv[1:] if argv is None else argv)
    given = [] if {"-A", "--app"} & set(arguments) else ["-A", import_path(app)]
    # A script is imported again under its own name, by `-A` here: it is the same module, not a second one.
    sys.modules.setdefault(main_module_name(), sys.modules["__main__"])
    alias = ["--as-celery"] if is_installed() else []
    raise SystemExit(main([*given, *alias, *arguments]))


def import_path(app: Celery) -> str:
    """`module:name` of the app, as `-A` takes it; pool children that are spawned import it again."""
    for name, module in list(sys.modules.items()):
        for attribute, value in list(vars(module).items()) if module is not None else ():
            if value is app and not attribute.startswith("_"):
                return f"{main_module_name() if name == '__main__' else name}:{attribute}"
    raise ImproperlyConfigured(
        f"{app!r} is in no module under a name of its own, so a worker cannot import it; make it a "
        "module's attribute, as in app = Celery(...)"
    )
