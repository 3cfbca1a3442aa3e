"""Does it run: what the transport cannot do, who works, what nobody serves."""

from __future__ import annotations

from collections.abc import Iterator

from taskmq.cli.checks import NOTE, OK, WARN, Finding
from taskmq.cli.text import duration, plural
from taskmq.cli.views.status import Status, warnings
from taskmq.transports.base import Capabilities
from taskmq.worker.banner import missing_capabilities

# A worker writes its row every 10 s; an older one belongs to one that is stuck, stopped or starved of CPU.
_SILENT = 30.0


def capabilities(found: Capabilities) -> Iterator[Finding]:
    """One finding per thing the transport cannot do; one ok when it can do everything."""
    missing = list(missing_capabilities(found))
    for meaning in missing:
        yield Finding(NOTE, "transport", meaning)
    if not missing:
        yield Finding(OK, "transport", "can do everything")


def life(status: Status, lease: float) -> Iterator[Finding]:
    """Workers and what a person should act on. `lease` bounds how long a busy one goes without a poll."""
    if not status.workers:
        yield Finding(NOTE, "workers", "none is alive")
    for worker in status.workers:
        age = max(0.0, status.now - worker.seen_at)
        said = f"{worker.name}: {plural(worker.slots, 'slot')}, reported {duration(age)} ago"
        silent = worker.seen_at - worker.last_poll_at
        if silent > max(_SILENT, lease):
            said += f", its last poll was {duration(silent)} before that"
        bad = age > _SILENT or silent > max(_SILENT, lease)
        yield Finding(WARN if bad else OK, "worker", said)
    for warning in warnings(status):
        yield Finding(WARN, "queues", warning)
