"""Priorities: one range, one direction, no clamp (P1, P11).

A priority is an int in -9..9, larger = more urgent, on every transport. A bool is refused, any
other int subclass is accepted and kept as a plain int.
"""

from __future__ import annotations

from typing import Any

from taskmq.errors import ConfigError, PriorityError

MIN_PRIORITY = -9
MAX_PRIORITY = 9


class Priority:
    """Plain int constants for the common levels (P11); they bring no behaviour of their own."""

    LOW = -5
    NORMAL = 0
    HIGH = 5
    CRITICAL = 9


def _fault(value: Any, where: str) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return (
            f"{where}: a priority is an int from {MIN_PRIORITY} to {MAX_PRIORITY} "
            f"(larger = more urgent), got {value!r} of type {type(value).__name__}"
        )
    if not MIN_PRIORITY <= value <= MAX_PRIORITY:
        return (
            f"{where}: priority {int(value)} is out of range, accepted is {MIN_PRIORITY}..{MAX_PRIORITY} "
            f"(larger = more urgent); it is not clamped"
        )
    return None


def check_priority(value: Any, where: str) -> int:
    """The priority as a plain int; `PriorityError` naming the value and the place otherwise."""
    # The common case costs one comparison; everything odd goes the slow way.
    if type(value) is int and -9 <= value <= 9:
        return value
    fault = _fault(value, where)
    if fault:
        raise PriorityError(fault)
    return int(value)


def declare_priority(value: Any, where: str) -> int:
    """As `check_priority`, for declarations (Config, QueueConfig, tasks): raises `ConfigError`."""
    fault = _fault(value, where)
    if fault:
        raise ConfigError(fault)
    return int(value)


def resolve_priority(
    *,
    submitted: int | None = None,
    parent: int | None = None,
    task: int | None = None,
    queue: int | None = None,
    default: int = Priority.NORMAL,
) -> int:
    """The priority of a message: the first of these that is set (DESIGN §4, seed §3.4).

    `parent` is given only by `ctx.publish` (P6) and by compat's `task_inherit_parent_priority`.
    """
    for level in (submitted, parent, task, queue):
        if level is not None:
            return level
    return default
