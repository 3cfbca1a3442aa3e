"""Apps: `Celery`, `shared_task`, and which app is current."""

from __future__ import annotations

from taskmq.compat._missing import missing_names
from taskmq.compat._state import app_or_default
from taskmq.compat.app.base import Celery
from taskmq.compat.app.declaring import shared_task

__all__ = ("Celery", "app_or_default", "shared_task")

__getattr__ = missing_names("app")
