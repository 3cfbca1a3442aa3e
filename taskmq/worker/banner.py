"""What a worker says at its start: what it consumes and how, and what cannot be had here."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from taskmq._version import __version__
from taskmq.pools.base import Pool
from taskmq.printable import printable
from taskmq.transports.base import Capabilities, Transport
from taskmq.worker.reporting import task_log
from taskmq.worker.rules import Rules

if TYPE_CHECKING:
    from taskmq.app import App

# What a missing capability means for whoever relies on it.
_MISSING = {
    "keeps_place": "a yielded message loses its place among its equals",
    "exact_peek": "yielding may miss a message, or happen for nothing",
    "atomic_turn": "a crash may repeat what follows a task",
    "leases": "a lost worker's messages come back when its connection ends, not after a lease",
    "shared_limits": "rate limits and concurrency keys hold per worker",
    "shared_results": "results are written apart from the messages",
    "persistent": "messages do not survive this process",
    "processes": "no other process can share the messages",
}


def banner(app: App, transport: Transport, pool: Pool, rules: Rules) -> list[str]:
    """The lines of the banner."""
    queues = ", ".join(
        printable(q.name) + (f" (weight {q.weight})" if q.weight != 1 else "") for q in rules.queues
    )
    lines = [
        f"taskmq {__version__} worker {printable(rules.name)}",
        f"  app        {printable(app.name or repr(app))}",
        f"  transport  {printable(transport.describe())}",
        f"  queues     {queues}",
        f"  pool       {pool.name}, concurrency {rules.slots}, prefetch {rules.prefetch}",
        f"  tasks      {len(app.registry.own())}",
    ]
    if not task_log.isEnabledFor(logging.INFO):
        # A worker that works and one that gets nothing look alike then.
        lines.append("  log        what goes wrong; with -l info each task too")
    notes = [*missing_capabilities(transport.capabilities), *transport.notes()]
    lines += [f"  note       {printable(said)}" for said in notes]
    return lines


def missing_capabilities(capabilities: Capabilities) -> Iterator[str]:
    """One line for each thing this transport cannot do."""
    for name, meaning in _MISSING.items():
        if not getattr(capabilities, name):
            yield meaning


def unenforceable(app: App, pool: Pool, rules: Rules) -> Iterator[str]:
    """One line for each task whose limits this pool cannot enforce, and one for the worker's own."""
    for task in app.registry.values():
        asked = {"soft": task.options.soft_time_limit, "hard": task.options.time_limit}
        missing = [
            f"{what} time limit of {seconds:g} s"
            for what, seconds in asked.items()
            if seconds is not None and not pool.can(what, task)
        ]
        if missing:
            yield (
                f"task {printable(task.name)}: pool {pool.name} cannot enforce its "
                f"{' and its '.join(missing)}"
            )
    for what, seconds in (("soft", rules.soft_time_limit), ("hard", rules.time_limit)):
        if seconds is not None and what not in pool.enforces:
            yield f"pool {pool.name} cannot enforce the worker's {what} time limit of {seconds:g} s"
