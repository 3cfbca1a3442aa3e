"""What a worker is told at its start; what is left unset comes from the app's `Config`."""

from __future__ import annotations

import math
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from taskmq.config import POOLS, START_METHODS
from taskmq.errors import ConfigError, nearest

if TYPE_CHECKING:
    from taskmq.config import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """One worker's options. None means what `Config` says, or the default written here.

    `queues` empty consumes every queue of `Config.queues` and the default queue.
    `pool` is one of `POOLS`. `concurrency` is the number of slots, `prefetch` how many deliveries
    may be held, running ones included (P16; solo has one slot).
    `name` must be unique among live workers; a taken one gets the process id appended.
    `app_spec` is what `load_app` takes (`-A`); prefork needs it where children are spawned, and
    `as_celery` tells those to install the `celery` alias before they load it.
    `start_method`: "fork" (Linux) or "spawn" (elsewhere, or on request); prefork only.
    `max_tasks_per_child` replaces a child after so many tasks, `max_memory_per_child` (KiB) after a task
    that left it larger; prefork only.
    `time_limit` and `soft_time_limit` (seconds) are for tasks that name none.
    `drain_timeout` (seconds, `math.inf`: no deadline) is how long running tasks have after TERM.
    `events` turns the event stream on. `control`, `heartbeat` and `maintenance` turned off mean: answers no
    control commands; writes no worker row; does no reaping, sweeping or sampling for others.
    Raises `ConfigError` naming the option, the value and what is accepted.
    """

    queues: Sequence[str] = ()
    pool: str | None = None
    concurrency: int | None = None
    prefetch: int | None = None
    name: str = ""
    app_spec: str = ""
    as_celery: bool = False
    start_method: str | None = None
    max_tasks_per_child: int | None = None
    max_memory_per_child: int | None = None
    time_limit: float | None = None
    soft_time_limit: float | None = None
    drain_timeout: float | None = None
    events: bool | None = None
    control: bool = True
    heartbeat: bool = True
    maintenance: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.queues, str) or not all(isinstance(q, str) and q for q in self.queues):
            raise self._fault("queues", "a list of queue names")
        object.__setattr__(self, "queues", tuple(dict.fromkeys(self.queues)))
        if self.pool is not None and self.pool not in POOLS:
            likely = nearest(str(self.pool), POOLS)
            raise self._fault("pool", f"one of {', '.join(POOLS)}", likely)
        if self.start_method is not None and self.start_method not in START_METHODS:
            raise self._fault("start_method", f"one of {', '.join(START_METHODS)}")
        for name in ("concurrency", "prefetch", "max_tasks_per_child"):
            self._integer(name, 1)
        self._integer("max_memory_per_child", 1024)
        for name in ("time_limit", "soft_time_limit"):
            self._seconds(name, above_zero=True, endless=False)
        self._seconds("drain_timeout", above_zero=False, endless=True)
        if self.pool == "prefork" and sys.platform == "win32":
            raise self._fault("pool", "threads or solo on Windows")
        if self.pool == "solo" and self.concurrency not in (None, 1):
            raise self._fault("concurrency", "1 with pool 'solo'")
        if self.pool == "prefork" and self.spawns and not self.app_spec:
            raise self._fault("app_spec", "the app's import path, where children are spawned")

    def over(self, config: Config) -> WorkerOptions:
        """A copy whose pool and start method are the settings' where these options name none."""
        return replace(
            self,
            pool=self.pool or config.pool,
            start_method=self.start_method or config.start_method,
        )

    @property
    def spawns(self) -> bool:
        """Whether prefork children are started afresh instead of forked."""
        method = self.start_method or ("fork" if sys.platform.startswith("linux") else "spawn")
        return method == "spawn"

    def _fault(self, name: str, accepted: str, likely: str = "") -> ConfigError:
        return ConfigError(
            f"worker option {name}: {accepted}, got {getattr(self, name)!r}.{likely}"
        )

    def _integer(self, name: str, low: int) -> None:
        value: Any = getattr(self, name)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise self._fault(name, f"an int from {low}")

    def _seconds(self, name: str, *, above_zero: bool, endless: bool) -> None:
        value: Any = getattr(self, name)
        if value is None:
            return
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or math.isnan(value) or value < 0 or (above_zero and value == 0):
            raise self._fault(name, "seconds above 0" if above_zero else "seconds from 0")
        if math.isinf(value) and not endless:
            raise self._fault(name, "a finite number of seconds")


def default_name() -> str:
    """`host-pid`: unique among the live workers of a machine."""
    return f"{socket.gethostname()}-{os.getpid()}"
