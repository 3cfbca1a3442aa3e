"""Celery's extras. None is there yet; each says what to use in its place."""

from __future__ import annotations

from taskmq.compat._missing import missing_names

__getattr__ = missing_names("contrib")
