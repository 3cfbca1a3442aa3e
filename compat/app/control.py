"""`app.control` and `inspect()`: commands to the workers, over TaskMQ's coordination.

Answers are Celery's in shape. What the engine has no command for raises `NotImplementedError` with what
to use instead. Source: Celery's "Workers guide", remote control.
"""

from __future__ import annotations

import signal as signals_of_os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.ids import uuid

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery
    from taskmq.coordination.base import Coordination, WorkerInfo

__all__ = ("Control", "Inspect")

_INSTEAD = {
    "add_consumer": "start a worker with -Q naming the queue",
    "cancel_consumer": "use `taskmq queue pause QUEUE`",
    "autoscale": "set -c/--concurrency at the worker's start",
    "pool_grow": "set -c/--concurrency at the worker's start",
    "pool_shrink": "set -c/--concurrency at the worker's start",
    "pool_restart": "restart the worker; TERM waits for its running tasks",
    "rate_limit": "set rate_limit on the task; it holds over all workers",
    "time_limit": "set time_limit and soft_time_limit on the task",
    "enable_events": "start the worker with -E, or set worker_send_task_events",
    "disable_events": "start the worker without -E",
    "heartbeat": "`taskmq status` shows when each worker was last seen",
    "election": "duties of the engine are held by one worker at a time already",
    "revoke_by_stamped_headers": "revoke by id",
}
# How often answers are looked for while they are awaited.
_LOOK_EVERY = 0.02
_STOPPING = ("SIGTERM", "SIGKILL", "SIGQUIT", "SIGINT", "TERM", "KILL", "QUIT", "INT")


class Control:
    """Commands to all workers, or to those named by `destination`."""

    def __init__(self, app: Celery) -> None:
        self.app = app

    @property
    def _coordination(self) -> Coordination:
        return self.app.engine.transport.coordination

    def inspect(
        self,
        destination: Sequence[str] | str | None = None,
        timeout: float = 1.0,
        callback: Any = None,
        connection: Any = None,
        limit: int | None = None,
        pattern: Any = None,
        matcher: Any = None,
    ) -> Inspect:
        """Questions to the workers; each waits at most `timeout` seconds, less when all have answered."""
        if pattern is not None or matcher is not None:
            raise ImproperlyConfigured("inspect(pattern=): name the workers with destination=")
        return Inspect(self, destination, timeout, callback, limit)

    def ping(
        self, destination: Sequence[str] | None = None, timeout: float = 1.0, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """`[{worker: {"ok": "pong"}}, …]` of the workers that answered."""
        return self.broadcast("ping", destination=destination, timeout=timeout, reply=True) or []

    def revoke(
        self,
        task_id: str | Sequence[str],
        destination: Any = None,
        terminate: bool = False,
        signal: Any = "SIGTERM",
        reply: bool = False,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> Any:
        """Never start these tasks; with `terminate` stop those that run.

        Stored, so it holds for workers that start later and needs no `destination`. The engine ends the
        process that runs the task, so every signal that ends one means the same here.
        """
        ids = [task_id] if isinstance(task_id, str) else [str(one) for one in task_id]
        if terminate and signal is not None and _signal_name(signal) not in _STOPPING:
            raise ImproperlyConfigured(
                f"revoke(signal=): one that ends a process ({', '.join(_STOPPING[:4])}), got {signal!r}"
            )
        self.app.engine.transport.operators.revoke(ids, reason="revoked through app.control")
        if terminate:
            arguments = {"task_ids": ids, "terminate": True}
            return self.broadcast(
                "revoke", arguments, destination=destination, reply=reply, timeout=timeout or 1.0
            )
        return [] if reply else None

    def terminate(
        self,
        task_id: str | Sequence[str],
        destination: Any = None,
        signal: Any = "SIGTERM",
        **kwargs: Any,
    ) -> Any:
        """Revoke with `terminate=True`."""
        return self.revoke(task_id, destination, terminate=True, signal=signal, **kwargs)

    def shutdown(self, destination: Sequence[str] | None = None, **kwargs: Any) -> Any:
        """Tell workers to stop as TERM does."""
        return self.broadcast("shutdown", destination=destination, **kwargs)

    def purge(self, connection: Any = None) -> int:
        """Delete every message that waits in the queues of this app; return how many."""
        operators = self.app.engine.transport.operators
        known = {info.name for info in operators.queues()}
        return sum(operators.purge(name) for name in self.app.amqp.queues if name in known)

    discard_all = purge

    def broadcast(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,
        destination: Sequence[str] | str | None = None,
        connection: Any = None,
        reply: bool = False,
        timeout: float = 1.0,
        limit: int | None = None,
        callback: Callable[[Any], Any] | None = None,
        channel: Any = None,
        pattern: Any = None,
        matcher: Any = None,
        **extra: Any,
    ) -> list[dict[str, Any]] | None:
        """Send a command; with `reply` wait for the answers: `[{worker: answer}, …]`, else None."""
        if command in _INSTEAD:
            raise NotImplementedError(f"control command {command!r}: {_INSTEAD[command]}")
        if pattern is not None or matcher is not None:
            raise ImproperlyConfigured("broadcast(pattern=): name the workers with destination=")
        if not self.app.conf.worker_enable_remote_control:
            # As in Celery nobody answers then; a revocation is stored and holds all the same.
            self.app.say_once(
                f"control command {command!r} is not sent: worker_enable_remote_control is off"
            )
            return [] if reply else None
        names = [destination] if isinstance(destination, str) else destination
        reply_to = uuid() if reply else None
        asked = self._coordination.send(
            command,
            {**(arguments or {}), **extra},
            to=list(names) if names is not None else None,
            reply_to=reply_to,
        )
        if reply_to is None:
            return None
        return self._answers(reply_to, len(asked), timeout, limit, callback)

    def _answers(
        self,
        reply_to: str,
        asked: int,
        timeout: float,
        limit: int | None,
        callback: Callable[[Any], Any] | None,
    ) -> list[dict[str, Any]]:
        wanted = asked if limit is None else min(asked, limit)
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + timeout
        while len(found) < wanted:
            for worker, answer in self._coordination.replies(reply_to):
                found.append({worker: dict(answer)})
                if callback is not None:
                    callback(found[-1])
            left = deadline - time.monotonic()
            if len(found) >= wanted or left <= 0:
                break
            time.sleep(min(_LOOK_EVERY, left))
        return found

    def __getattr__(self, name: str) -> Any:
        if name in _INSTEAD:
            raise NotImplementedError(f"app.control.{name}: {_INSTEAD[name]}")
        raise AttributeError(f"app.control has no {name!r}")


class Inspect:
    """Questions to the workers: `{worker: answer}`, None when no worker answered, as in Celery."""

    def __init__(
        self,
        control: Control,
        destination: Sequence[str] | str | None,
        timeout: float,
        callback: Any,
        limit: int | None,
    ) -> None:
        self._control = control
        self.app = control.app
        self.destination = [destination] if isinstance(destination, str) else destination
        self.timeout = timeout
        self.callback = callback
        self.limit = limit

    def _ask(self, command: str) -> dict[str, Any] | None:
        answers = self._control.broadcast(
            command,
            destination=self.destination,
            reply=True,
            timeout=self.timeout,
            limit=self.limit,
            callback=self.callback,
        )
        found: dict[str, Any] = {}
        for answer in answers or ():
            for worker, said in answer.items():
                found[worker] = said.get("ok", said)
        return found or None

    def _workers(self) -> list[WorkerInfo]:
        workers = self._control._coordination.workers()
        return [w for w in workers if self.destination is None or w.name in self.destination]

    def ping(self, destination: Any = None) -> dict[str, Any] | None:
        """`{worker: {"ok": "pong"}}`."""
        answers = self._control.ping(destination or self.destination, self.timeout)
        return {name: said for answer in answers for name, said in answer.items()} or None

    def active(self, safe: Any = None) -> dict[str, list[dict[str, Any]]] | None:
        """The tasks that run now. Never their arguments: `args` and `kwargs` are not told (DESIGN §11)."""
        answers = self._ask("active")
        if answers is None:
            return None
        return {name: [_request(entry, name) for entry in tasks] for name, tasks in answers.items()}

    def stats(self) -> dict[str, Any] | None:
        """Counts of each worker since its start."""
        return self._ask("stats")

    def active_queues(self) -> dict[str, list[dict[str, Any]]] | None:
        """The queues each worker consumes."""
        return {
            worker.name: [{"name": name, "routing_key": name} for name in worker.queues]
            for worker in self._workers()
        } or None

    def registered(self, *taskinfoitems: str) -> dict[str, list[str]] | None:
        """The tasks each worker knows."""
        if taskinfoitems:
            raise NotImplementedError(
                "registered(): attributes of tasks are not told; read app.tasks"
            )
        return {worker.name: sorted(worker.tasks) for worker in self._workers()} or None

    registered_tasks = registered

    def reserved(self, safe: Any = None) -> dict[str, list[Any]] | None:
        """Tasks held and not started: a worker hands them back when something more urgent waits, so ask
        the store (`taskmq peek`, `taskmq status`)."""
        raise NotImplementedError(
            "inspect().reserved(): use `taskmq status`, which counts them by queue"
        )

    def scheduled(self, safe: Any = None) -> dict[str, list[Any]] | None:
        """Tasks that wait for their time: no worker holds them, they are in the store."""
        raise NotImplementedError(
            "inspect().scheduled(): use `taskmq status`; workers hold no such tasks"
        )

    def revoked(self) -> dict[str, list[str]] | None:
        """Revocations are stored, no worker keeps a list of them."""
        raise NotImplementedError(
            "inspect().revoked(): use `taskmq why ID`, which says so of one task"
        )

    def conf(self, with_defaults: bool = False) -> dict[str, Any] | None:
        """The settings of this process under each worker's name: workers run the same project."""
        table = self.app.conf.table(with_defaults)
        return {worker.name: table for worker in self._workers()} or None

    def query_task(self, *ids: Any) -> dict[str, Any]:
        """Where tasks are, from the store: `{id: state}`."""
        names = [one for item in ids for one in ([item] if isinstance(item, str) else item)]
        return {task_id: str(self.app.AsyncResult(task_id).taskmq_state) for task_id in names}


def _request(entry: Mapping[str, Any], worker: str) -> dict[str, Any]:
    return {
        "id": entry.get("task_id"),
        "name": entry.get("task"),
        "type": entry.get("task"),
        "args": None,
        "kwargs": None,
        "hostname": worker,
        "time_start": entry.get("started_at"),
        "acknowledged": True,
        "worker_pid": entry.get("pid"),
        "delivery_info": {
            "exchange": "",
            "routing_key": entry.get("queue"),
            "priority": entry.get("priority"),
            "redelivered": (entry.get("deliveries") or 1) > 1,
        },
    }


def _signal_name(value: Any) -> str:
    if isinstance(value, int):
        return signals_of_os.Signals(value).name
    return str(value).upper()
