"""Does it run: what the transport cannot do, who works, what nobody serves."""

from __future__ import annotations

from collections.abc import Iterator

from taskmq.cli.checks import NOTE, OK, WARN, Finding
from taskmq.cli.text import duration, plural
from taskmq.cli.views.status import Status, warnings
from taskmq.transports.base import Capabilities
from taskmq.worker.banner import missing_capabilities

# A worker writes its row every 10 s; one that says no newer poll is stuck or stopped.
_SILENT = 30.0


def capabilities(found: Capabilities) -> Iterator[Finding]:
    """One finding per thing the transport cannot do; one ok when it can do everything."""
    missing = list(missing_capabilities(found))
    for meaning in missing:
        yield Finding(NOTE, "transport", meaning)
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
