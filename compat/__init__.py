"""Celery's interface on TaskMQ's engine: `from taskmq.compat import Celery`.

`taskmq.compat.X` mirrors `celery.X`. What is not there yet says so when it is used.
"""

from __future__ import annotations

from taskmq.compat import local
from taskmq.compat._missing import explain_missing_modules, missing_names
from taskmq.compat._state import current_app, current_task
from taskmq.compat._version import SERIES, VERSION, __version__, version_info
from taskmq.compat.alias import install_as_celery, install_if_asked
from taskmq.compat.app.base import Celery
from taskmq.compat.app.declaring import shared_task
from taskmq.compat.app.task import Task
from taskmq.compat.canvas import (
    Signature,
    chain,
    chord,
    group,
    maybe_signature,
    signature,
    subtask,
)
from taskmq.ids import uuid

__all__ = (
    "Celery",
    "Signature",
    "Task",
    "chain",
    "chord",
    "current_app",
    "current_task",
    "group",
    "install_as_celery",
    "local",
    "maybe_signature",
    "shared_task",
    "signature",
    "subtask",
    "uuid",
    "SERIES",
    "VERSION",
    "__version__",
    "version_info",
)

__getattr__ = missing_names("")
explain_missing_modules()
install_if_asked()
