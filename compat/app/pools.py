"""The pool that a project's settings name, in the engine's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from taskmq.config import POOLS, START_METHODS
from taskmq.errors import nearest

if TYPE_CHECKING:
    from taskmq.compat.app.settings import Settings

__all__ = ("PoolSettings", "pool_settings")

_ALIASES = {"processes": "prefork", "thread": "threads"}
# They run many tasks that wait at once, and so do threads.
_GREEN = ("gevent", "eventlet")
# The classes of Celery's own pools, as a setting may name them.
_CLASSES = "celery.concurrency."


class PoolSettings(NamedTuple):
    """`pool` and `start_method` as the engine takes them, and what has to be said of the settings."""

    pool: str | None = None
    start_method: str | None = None
    notes: tuple[str, ...] = ()


def pool_settings(conf: Settings) -> PoolSettings:
    """What `worker_pool` and `worker_pool_start_method` mean where the project sets them."""
    notes = []
    pool = _pool(conf.worker_pool) if conf.value_set_for("worker_pool") else None
    if pool in _GREEN:
        notes.append(
            f"setting worker_pool: there is no {pool} pool yet, a worker started without -P uses threads"
        )
        pool = "threads"
    elif pool is not None and pool not in POOLS:
        likely = nearest(str(pool), POOLS)
        notes.append(
            f"setting worker_pool has no effect: one of {', '.join(POOLS)} is expected, got "
            f"{conf.worker_pool!r}.{likely}"
        )
        pool = None
    method = (
        conf.worker_pool_start_method if conf.value_set_for("worker_pool_start_method") else None
    )
    if method is not None and method not in START_METHODS:
        notes.append(
            f"setting worker_pool_start_method has no effect: one of {', '.join(START_METHODS)} is "
            f"expected, got {method!r}"
        )
        method = None
    return PoolSettings(pool, method, tuple(notes))


def _pool(value: Any) -> Any:
    """A name in lower case; of one of Celery's own classes the name of its pool."""
    if not isinstance(value, str):
        return value
    name = value.lower()
    if name.startswith(_CLASSES):
        name = name[len(_CLASSES) :].partition(":")[0].partition(".")[0]
    return _ALIASES.get(name, name)
