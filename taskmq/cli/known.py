"""Which queues are known here, so that a misspelt name is noticed before it matters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from taskmq.cli.output import note
from taskmq.errors import ConfigError, nearest

if TYPE_CHECKING:
    from taskmq.cli.session import Session
    from taskmq.transports.base import QueueShare


def declared_queues(session: Session) -> set[str]:
    """What the application's settings and tasks name; nothing where there is no application."""
    if not session.app_spec:
        return set()
    config = session.app.config
    own = {task.options.queue for task in session.own_tasks()}
    return {config.default_queue, *config.queues} | {name for name in own if name is not None}


def known_queues(session: Session) -> set[str]:
    """What the application, the store and the live workers name."""
    seen = session.glance()
    stored = {info.name for info in seen.operators.queues()}
    served = {name for worker in seen.coordination.workers() for name in worker.queues}
    return declared_queues(session) | stored | served


def note_unknown_queues(session: Session, names: Iterable[str]) -> None:
    """A note for each name nobody knows; the command goes on, for queues come with their messages."""
    for line in _unknown(session, names):
        note(line)


def refuse_unknown_queues(session: Session, names: Iterable[str], instead: str = "") -> None:
    """`ConfigError` for the first name nobody knows, where nothing can be meant by it."""
    for line in _unknown(session, names):
        raise ConfigError(f"{line}{instead}")


def shares(session: Session, names: list[str]) -> tuple[QueueShare, ...]:
    """Queues with their weights; without names every queue that is known."""
    from taskmq.transports.base import QueueShare

    config = session.app.config
    chosen = names or sorted(known_queues(session))
    return tuple(QueueShare(name, config.queue(name).weight) for name in chosen)


def _unknown(session: Session, names: Iterable[str]) -> list[str]:
    wanted = list(dict.fromkeys(names))
    if declared_queues(session).issuperset(wanted):
        return []
    known = known_queues(session)
    who = (
        "neither the application nor the store knows a"
        if session.app_spec
        else "the store knows no"
    )
    return [f"{who} queue {name!r}.{nearest(name, known)}" for name in wanted if name not in known]
