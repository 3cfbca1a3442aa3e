"""Building a worker's pool from its options. Adapters are imported only when they are asked for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from taskmq.config import POOLS
from taskmq.errors import ConfigError
from taskmq.pools.base import Pool
from taskmq.worker.options import WorkerOptions
from taskmq.worker.rules import Rules

if TYPE_CHECKING:
    from taskmq.app import App


def build_pool(app: App, options: WorkerOptions, rules: Rules) -> Pool:
    """The pool that options or settings name; `ConfigError` where it cannot serve this app."""
    options = options.over(app.config)
    if options.pool == "prefork":
        return _prefork(app, options, rules)
    if options.pool == "threads":
        from taskmq.pools.threads import ThreadsPool

        return ThreadsPool(app, rules.slots, clock=app.clock)
    if options.pool == "solo":
        from taskmq.pools.solo import SoloPool

        return SoloPool(app, clock=app.clock)
    if options.pool == "asyncio":
        from taskmq.pools.asyncio_pool import AsyncioPool

        return AsyncioPool(app, rules.slots, clock=app.clock)
    raise ConfigError(f"worker option pool: one of {', '.join(POOLS)}, got {options.pool!r}")


def _prefork(app: App, options: WorkerOptions, rules: Rules) -> Pool:
    from taskmq.pools.child import ChildSettings
    from taskmq.pools.prefork import PreforkPool

    config = app.config
    if not app.transport.capabilities.processes:
        raise ConfigError(
            f"pool prefork runs tasks in child processes, which cannot reach {app.transport.describe()}: "
            "what they publish would be lost. Use pool 'threads', 'solo' or 'asyncio'"
        )
    most_memory = options.max_memory_per_child or config.max_memory_per_child
    root = logging.getLogger()
    settings = ChildSettings(
        worker=rules.name,
        app_spec=options.app_spec,
        as_celery=options.as_celery,
        measure_memory=most_memory is not None,
        log_level=root.getEffectiveLevel(),
        log_format=_log_format(root),
    )
    return PreforkPool(
        app,
        rules.slots,
        clock=app.clock,
        settings=settings,
        spawn=options.spawns,
        max_tasks_per_child=options.max_tasks_per_child or config.max_tasks_per_child,
        max_memory_per_child=most_memory,
    )


def _log_format(root: logging.Logger) -> str:
    """How this process writes its log, for children that do not inherit it."""
    for handler in root.handlers:
        if handler.formatter is not None and handler.formatter._fmt:
            return handler.formatter._fmt
    return ""
