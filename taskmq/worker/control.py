"""The control commands a worker answers: one function each, in a table.

A command comes through `coordination.send`; every one is answered, with `{"ok": …}` or `{"error": …}`, also
while the worker drains.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from taskmq.coordination.base import Command
from taskmq.errors import nearest
from taskmq.pools.base import Ending

if TYPE_CHECKING:
    from taskmq.worker.coordinator import Coordinator

log = logging.getLogger("taskmq.worker")

Handler = Callable[["Coordinator", Mapping[str, Any]], Any]


def ping(worker: Coordinator, arguments: Mapping[str, Any]) -> Any:
    """Whether it lives: answers "pong"."""
    return "pong"


def revoke(worker: Coordinator, arguments: Mapping[str, Any]) -> Any:
    """`task_ids`, `terminate`, `reason`: stop those that run here; the answer is what was done to each.

    Storing the revocation is the sender's part; this reaches runs that have started. Without
    `terminate`, or in a pool that cannot, the run stops at its next `ctx.check_cancelled()`.
    """
    task_ids = arguments.get("task_ids")
    if not isinstance(task_ids, list) or not all(isinstance(t, str) for t in task_ids):
        raise ValueError(f"revoke: task_ids is a list of task ids, got {task_ids!r}")
    reason = str(arguments.get("reason") or "")
    done = {}
    for running in worker.held.of_tasks(task_ids):
        task_id = running.delivery.message.task_id
        running.revoked_for = reason
        worker.pool.cancel(running.number, reason or "it was revoked")
        done[task_id] = "asked to stop"
        if arguments.get("terminate") and worker.pool.terminate(
            running.number, Ending.CANCELLED, "revoked and terminated"
        ):
            done[task_id] = "terminated"
    return done


def shutdown(worker: Coordinator, arguments: Mapping[str, Any]) -> Any:
    """Stop as TERM does: reserve nothing more, hand back what has not started, let the rest finish."""
    worker.stop("a shutdown command")
    return "draining"


def stats(worker: Coordinator, arguments: Mapping[str, Any]) -> Any:
    """Counts since the start, and what the worker holds."""
    return worker.stats()


def active(worker: Coordinator, arguments: Mapping[str, Any]) -> Any:
    """The tasks that run now; never their arguments."""
    pids = worker.pool.busy_pids()
    return [
        {
            "task_id": running.delivery.message.task_id,
            "task": running.delivery.message.task,
            "queue": running.delivery.message.queue,
            "priority": running.delivery.message.priority,
            "retries": running.delivery.message.retries,
            "deliveries": running.delivery.deliveries,
            "started_at": running.started_at,
            "pid": pids.get(running.number),
        }
        for running in worker.held.running.values()
    ]


HANDLERS: Mapping[str, Handler] = {
    "ping": ping,
    "revoke": revoke,
    "shutdown": shutdown,
    "stats": stats,
    "active": active,
}


def answer(worker: Coordinator, command: Command) -> Mapping[str, Any]:
    """Carry out one command. What it asks for cannot stop the worker (I10)."""
    handler = HANDLERS.get(command.name)
    if handler is None:
        likely = nearest(command.name, HANDLERS)
        return {
            "error": f"unknown command {command.name!r}; known are {', '.join(HANDLERS)}.{likely}"
        }
    try:
        return {"ok": handler(worker, command.arguments)}
    except Exception as exc:
        log.exception("the command %s failed", command.name)
        return {"error": f"{type(exc).__name__}: {exc}"}
