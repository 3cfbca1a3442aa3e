"""TaskMQ: a Celery-compatible task queue on a strict-priority engine.

The public names, loaded on first use: `import taskmq` stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskmq._version import __version__

if TYPE_CHECKING:
    from taskmq.app import App as App
    from taskmq.config import Config as Config
    from taskmq.config import QueueConfig as QueueConfig
    from taskmq.context import Context as Context
    from taskmq.context import current_context as current_context
    from taskmq.priority import Priority as Priority
    from taskmq.result import Result as Result
    from taskmq.retry import RetryPolicy as RetryPolicy
    from taskmq.states import AckMode as AckMode
    from taskmq.states import State as State
    from taskmq.task import Task as Task

_WHERE = {
    "App": "taskmq.app",
    "Config": "taskmq.config",
    "QueueConfig": "taskmq.config",
    "Priority": "taskmq.priority",
    "Task": "taskmq.task",
    "Context": "taskmq.context",
    "current_context": "taskmq.context",
    "Result": "taskmq.result",
    "RetryPolicy": "taskmq.retry",
    "State": "taskmq.states",
    "AckMode": "taskmq.states",
}

__all__ = [*_WHERE, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        from importlib import import_module

        value = getattr(import_module(_WHERE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'taskmq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
