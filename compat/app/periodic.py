"""The periodic tasks of a project: kept as Celery keeps them, in `conf.beat_schedule`.

The process that submits them is not there yet. They are checked and counted, and a worker's start and
`taskmq doctor` say how many will not run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from taskmq.compat.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery
    from taskmq.compat.app.settings import Settings

__all__ = ("entry_of", "keep", "findings")

log = logging.getLogger("taskmq.compat")

#: Chains, groups and chores of Celery's own; no project registers them.
_CELERYS = "celery."
#: How many names of entries are shown.
_SHOWN = 3


def entry_of(
    app: Celery,
    schedule: Any,
    sig: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    name: str | None,
    options: Mapping[str, Any],
) -> tuple[str, dict[str, Any]]:
    """The key and the entry that `add_periodic_task` makes of its arguments.

    Raises `ImproperlyConfigured` for what is no schedule, or no signature or task.
    """
    from taskmq.compat.canvas.signature import Signature
    from taskmq.compat.schedules import maybe_schedule

    maybe_schedule(schedule)
    if isinstance(sig, Signature):
        sig = sig.clone(args, kwargs)
    elif isinstance(getattr(sig, "name", None), str):
        sig = app.signature(sig.name, args, kwargs)
    else:
        raise ImproperlyConfigured(
            f"add_periodic_task: a signature like task.s(...), or a task, got {sig!r}"
        )
    entry = {
        "schedule": schedule,
        "task": sig.task,
        "args": tuple(sig.args),
        "kwargs": dict(sig.kwargs),
        "options": {**sig.options, **options},
    }
    return name or repr(sig), entry


def keep(conf: Settings, key: str, entry: Mapping[str, Any], *, named: bool) -> None:
    """Put an entry into the schedule, where it stands."""
    schedule = conf.beat_schedule
    if not isinstance(schedule, MutableMapping):
        raise ImproperlyConfigured(f"beat_schedule: a dict of name to entry, got {schedule!r}")
    if not named and key in schedule:
        log.warning("periodic task %r takes the place of another one; give it name=", key)
    schedule[key] = entry


def findings(app: Celery) -> list[str]:
    """What there is to say of a project's periodic tasks; nothing when it has none."""
    schedule = app.conf.beat_schedule
    if not schedule:
        return []
    if not isinstance(schedule, Mapping):
        return [f"beat_schedule: a dict of name to entry, got {schedule!r}"]
    names = ", ".join(str(name) for name in list(schedule)[:_SHOWN])
    more = ", …" if len(schedule) > _SHOWN else ""
    count = "1 periodic task" if len(schedule) == 1 else f"{len(schedule)} periodic tasks"
    lines = [
        f"{count} will not run ({names}{more}): the process that submits them (beat) is not there yet; let "
        "cron run `taskmq call` meanwhile"
    ]
    for name, entry in schedule.items():
        wrong = _wrong(app, entry)
        if wrong:
            lines.append(f"beat_schedule[{name!r}]: {wrong}")
    return lines


def _wrong(app: Celery, entry: Any) -> str:
    """What keeps an entry from ever running."""
    from taskmq.compat.schedules import maybe_schedule

    if not isinstance(entry, Mapping) or not isinstance(entry.get("task"), str):
        return f"a dict with 'task', the name of a task, and 'schedule', got {entry!r}"
    if entry["task"] not in app.tasks and not entry["task"].startswith(_CELERYS):
        return f"no task {entry['task']!r} is registered"
    try:
        maybe_schedule(entry.get("schedule"))
    except ImproperlyConfigured as exc:
        return str(exc)
    return ""
