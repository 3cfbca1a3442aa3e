"""Does it run: what the transport cannot do, who works, what nobody serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from taskmq.cli.checks import NOTE, OK, WARN, Finding
from taskmq.cli.text import duration, plural
from taskmq.cli.views.status import Status, warnings
from taskmq.transports.base import Capabilities

# What a missing capability means to the person who runs it.
_WITHOUT = {
    "keeps_place": "a yielded message goes to the end of its priority",
    "exact_peek": "`taskmq peek` shows the order only nearly",
    "atomic_turn": "a crash may run a task or a workflow step again",
    "leases": "a lost worker's messages come back only with its connection",
    "shared_limits": "rate limits and concurrency keys hold per worker",
    "shared_results": "results are written apart from the message",
    "persistent": "messages end with the process",
    "processes": "only one process can use it",
}

# A worker polls many times a second; a silent one is stuck or stopped.
_SILENT = 15.0


def capabilities(found: Capabilities) -> Iterator[Finding]:
    """One finding per thing the transport cannot do; one ok when it can do everything."""
    missing = [f.name for f in fields(Capabilities) if not getattr(found, f.name)]
    for name in missing:
        yield Finding(NOTE, "transport", f"no {name}: {_WITHOUT[name]}")
    if not missing:
        yield Finding(OK, "transport", "can do everything")


def life(status: Status) -> Iterator[Finding]:
    """Workers and what a person should act on."""
    if not status.workers:
        yield Finding(NOTE, "workers", "none is alive")
    for worker in status.workers:
        silent = max(0.0, status.now - worker.last_poll_at)
        said = f"{worker.name}: {plural(worker.slots, 'slot')}, last poll {duration(silent)} ago"
        yield Finding(WARN if silent > _SILENT else OK, "worker", said)
    for warning in warnings(status):
        yield Finding(WARN, "queues", warning)
