"""The name of a worker: whoever lives under one keeps it, a second one gets a suffix.

By their names workers are commanded and hold duties; leases go by tokens of their own. So a name is
nothing that a message's fate depends on (reliability row 54).
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from taskmq.coordination.base import WorkerInfo
from taskmq.transports.base import Transport

log = logging.getLogger("taskmq.worker")

# How long a worker that dies between choosing its name and writing its row keeps others from it.
_CHOOSING = 10.0


@contextmanager
def unique_name(transport: Transport, name: str) -> Iterator[str]:
    """`name`, or one with the process id appended while a live worker has it.

    The name is kept for the caller inside the block, in which it writes its row: workers that start at the
    same moment see no row of each other yet.
    """
    coordination = transport.coordination
    holder = uuid4().hex
    why = ""
    for candidate in _candidates(name):
        if not coordination.take_duty(f"to be {candidate}", holder, _CHOOSING):
            why = "is starting"
            continue
        other = _living(coordination.workers(), candidate)
        if other is None:
            break
        why = f"lives (pid {other.pid} on {other.host})"
    if candidate != name:
        log.warning(
            "a worker named %s %s; this one is %s",
            name,
            why,
            candidate,
            extra={"event": "worker.renamed"},
        )
    try:
        yield candidate
    finally:
        coordination.drop_duties(holder)


def _candidates(name: str) -> Iterator[str]:
    yield name
    yield f"{name}-{os.getpid()}"
    # In containers all may have one process id.
    for number in itertools.count(2):
        yield f"{name}-{os.getpid()}-{number}"


def _living(workers: list[WorkerInfo], name: str) -> WorkerInfo | None:
    return next((w for w in workers if w.name == name and not _is_gone(w)), None)


def _is_gone(worker: WorkerInfo) -> bool:
    """Whether a row was left behind by a process of this host that has ended."""
    if worker.host != socket.gethostname():
        return False
    if worker.pid == os.getpid():
        return True  # in a container a restarted worker has the same id
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it lives, under another user
    return False
