"""`taskmq status`: how much waits where, how long, who serves it and who starves. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from taskmq.cli.text import duration, plural, table
from taskmq.coordination.base import WorkerInfo
from taskmq.maintenance import starves
from taskmq.printable import printable
from taskmq.transports.operators import Depth, QueueInfo

Lines = list[str]

# A worker writes its row every 10 s and polls in between; one with long leases and all slots taken polls
# only to renew them.
_SILENT = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """One queue: its bands from the most urgent down, and the workers that consume it."""

    name: str
    paused: bool
    bands: tuple[Depth, ...]
    workers: tuple[str, ...]

    @property
    def ready(self) -> int:
        return sum(band.ready for band in self.bands)

    def total(self, field: str) -> int:
        return sum(getattr(band, field) for band in self.bands)

    @property
    def oldest_at(self) -> float | None:
        return min((b.oldest_at for b in self.bands if b.oldest_at is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Everything `taskmq status` says. `starvation_after` is the setting, in seconds."""

    where: str
    now: float
    queues: tuple[QueueStatus, ...]
    workers: tuple[WorkerInfo, ...]
    dead: int
    dead_capped: bool
    starvation_after: float

    def age(self, at: float | None) -> float | None:
        return None if at is None else max(0.0, self.now - at)

    def starves(self, band: Depth) -> bool:
        """Whether the oldest claimable message of this band waits longer than `starvation_after`."""
        return starves(band, self.now, self.starvation_after)


def gather(
    *,
    where: str,
    now: float,
    depths: Sequence[Depth],
    queues: Sequence[QueueInfo],
    workers: Sequence[WorkerInfo],
    dead: int,
    dead_capped: bool = False,
    starvation_after: float,
    declared: Collection[str] = (),
    only: Sequence[str] = (),
) -> Status:
    """Join what the seams say and the queues an application declares.

    `only` narrows to these queues, in any case those are listed.
    """
    paused = {q.name: q.paused for q in queues}
    served = {name for worker in workers for name in worker.queues}
    names = list(only) or sorted({d.queue for d in depths} | {*paused, *served, *declared})
    return Status(
        where=where,
        now=now,
        queues=tuple(
            QueueStatus(
                name=name,
                paused=paused.get(name, False),
                bands=tuple(
                    sorted((d for d in depths if d.queue == name), key=lambda d: -d.priority)
                ),
                workers=tuple(w.name for w in workers if name in w.queues),
            )
            for name in names
        ),
        workers=tuple(workers),
        dead=dead,
        dead_capped=dead_capped,
        starvation_after=starvation_after,
    )


def by_priority(status: Status) -> Lines:
    """The queues band by band, as the seed prints them: `email: P9=3 P5=12 P0=104`."""
    lines: Lines = []
    for queue in status.queues:
        waiting = [band for band in queue.bands if band.ready]
        counts = " ".join(f"P{band.priority}={band.ready}" for band in waiting)
        lines.append(f"{printable(queue.name)}: {counts or 'nothing waits'}")
        ages = [(band, status.age(band.oldest_at)) for band in waiting]
        oldest = "  ".join(f"P{b.priority} {duration(age)}" for b, age in ages if age is not None)
        if oldest:
            lines.append(f"  oldest    {oldest}")
        rest = [
            f"{queue.total(field)} {field}"
            for field in ("running", "reserved", "scheduled", "blocked")
            if queue.total(field)
        ]
        if rest:
            lines.append(f"  besides   {', '.join(rest)}")
    return lines or ["no queue yet: nothing was ever submitted here"]


def by_queue(status: Status, columns: int | None = None) -> Lines:
    """One line per queue."""
    rows = []
    for queue in status.queues:
        age = status.age(queue.oldest_at)
        rows.append(
            (
                queue.name,
                queue.ready,
                queue.total("scheduled"),
                queue.total("blocked"),
                queue.total("reserved"),
                queue.total("running"),
                "-" if age is None else duration(age),
                len(queue.workers),
                "paused" if queue.paused else "",
            )
        )
    if not rows:
        return ["no queue yet: nothing was ever submitted here"]
    return table(
        [
            "QUEUE",
            "READY",
            "SCHEDULED",
            "BLOCKED",
            "RESERVED",
            "RUNNING",
            "OLDEST",
            "WORKERS",
            "",
        ],
        rows,
        align="<>>>>>>><",
        columns=columns,
        below=range(1, 9),
    )


def worker_lines(status: Status, columns: int | None = None) -> Lines:
    """One line per live worker, with the time since it wrote its row."""
    if not status.workers:
        return ["no worker is alive"]
    return table(
        ["WORKER", "STATE", "SLOTS", "PID", "UP", "REPORTED", "QUEUES"],
        [
            (
                worker.name,
                worker.state,
                worker.slots,
                worker.pid,
                duration(status.now - worker.started_at),
                _reported(worker, status.now),
                ", ".join(worker.queues),
            )
            for worker in status.workers
        ],
        align="<<>>>><",
        columns=columns,
        below=(6,),
    )


def _reported(worker: WorkerInfo, now: float) -> str:
    """How old what is known of it is, and its last poll where that was long before."""
    said = f"{duration(now - worker.seen_at)} ago"
    silent = worker.seen_at - worker.last_poll_at
    return f"{said}, polled {duration(silent)} before" if silent > _SILENT else said


def worker_summary(status: Status) -> str:
    """All workers in one line: how many, their slots, and how long ago each reported."""
    if not status.workers:
        return "workers: none is alive"
    slots = sum(worker.slots for worker in status.workers)
    ages = sorted(max(0.0, status.now - worker.seen_at) for worker in status.workers)
    said = duration(ages[0])
    if len(ages) > 1:
        said += f" to {duration(ages[-1])}"
    return f"workers: {len(ages)} alive with {plural(slots, 'slot')}, reported {said} ago"


def warnings(status: Status) -> Lines:
    """What a person should act on: who starves and why, what nobody consumes, what died."""
    lines: Lines = []
    for queue in status.queues:
        name = printable(queue.name)
        if queue.paused:
            held = (
                f"{plural(queue.ready, 'message')} wait" if queue.ready != 1 else "1 message waits"
            )
            lines.append(f"{name} is paused, {held}: taskmq queue resume {name}")
        elif queue.ready and not queue.workers:
            lines.append(f"{name}: no live worker consumes it, {queue.ready} waiting")
        else:
            lines.extend(_starving(status, queue))
    if status.dead:
        count = f"{status.dead} or more dead letters" if status.dead_capped else None
        lines.append(f"{count or plural(status.dead, 'dead letter')}: taskmq dlq list")
    return lines


def _starving(status: Status, queue: QueueStatus) -> Lines:
    lines = []
    for band in queue.bands:
        age = status.age(band.oldest_at)
        if age is not None and status.starves(band):
            lines.append(
                f"{printable(queue.name)}: P{band.priority} starves, its oldest of {band.ready} "
                f"waits {duration(age)} (starvation_after is {duration(status.starvation_after)})"
            )
    return lines


def as_json(status: Status) -> dict[str, Any]:
    """The same for programs; times are epoch seconds, ages and durations seconds."""
    return {
        "transport": status.where,
        "now": status.now,
        "starvation_after": status.starvation_after,
        "queues": [
            {
                "queue": queue.name,
                "paused": queue.paused,
                "workers": list(queue.workers),
                "ready": queue.ready,
                "oldest_age": status.age(queue.oldest_at),
                "bands": [
                    {
                        "priority": band.priority,
                        "ready": band.ready,
                        "scheduled": band.scheduled,
                        "blocked": band.blocked,
                        "reserved": band.reserved,
                        "running": band.running,
                        "oldest_age": status.age(band.oldest_at),
                        "starving": status.starves(band),
                    }
                    for band in queue.bands
                ],
            }
            for queue in status.queues
        ],
        "workers": [
            {
                "name": worker.name,
                "pid": worker.pid,
                "host": worker.host,
                "state": worker.state,
                "queues": list(worker.queues),
                "slots": worker.slots,
                "free_slots": worker.free_slots,
                "pool": worker.details.get("pool"),
                "events": worker.details.get("events"),
                "started_at": worker.started_at,
                "seconds_since_seen": max(0.0, status.now - worker.seen_at),
                "seconds_since_poll": max(0.0, status.now - worker.last_poll_at),
            }
            for worker in status.workers
        ],
        "dead_letters": status.dead,
        "dead_letters_capped": status.dead_capped,
        "warnings": warnings(status),
    }
