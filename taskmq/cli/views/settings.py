"""`taskmq config check`: settings that are valid and may still not do what was meant. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from taskmq.config import Config
from taskmq.options import TaskOptions


def advice(config: Config, tasks: Sequence[TaskOptions]) -> list[str]:
    """One line per thing to know, empty when there is none."""
    said = []
    slots = config.slots
    if config.prefetch is not None and config.prefetch < slots:
        said.append(
            f"prefetch ({config.prefetch}) is below concurrency ({slots}): {slots - config.prefetch} "
            "slots can never be used"
        )
    for name in ("normal_reserved_slots", "urgent_reserved_slots"):
        reserved = getattr(config, name)
        if reserved and reserved >= slots:
            said.append(f"{name} ({reserved}) leaves no slot of {slots} for the other messages")
    both = config.normal_reserved_slots + config.urgent_reserved_slots
    if config.normal_reserved_slots and config.urgent_reserved_slots and both >= slots:
        said.append(f"normal_reserved_slots and urgent_reserved_slots take all {slots} slots")
    soft, hard = config.soft_time_limit, config.time_limit
    if soft is not None and hard is not None and soft >= hard:
        said.append(f"soft_time_limit ({soft:g}) is not below time_limit ({hard:g}): it never acts")
    if config.queues:
        known = {config.default_queue, *config.queues}
        strays = sorted({t.queue for t in tasks if t.queue is not None} - known)
        for queue in strays:
            said.append(
                f"queue {queue!r} of a task is not in `queues`: a worker without -Q does not consume it"
            )
    if config.broker_url.startswith("memory:"):
        said.append("broker_url is memory://: only this process sees what it submits")
    if config.lease <= 3 * config.poll_interval:
        said.append(f"lease ({config.lease:g}) is close to poll_interval: leases may run out")
    return said
