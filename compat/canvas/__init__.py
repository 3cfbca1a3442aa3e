"""Calls to be made later, one after the other, beside each other, and together again.

Source: Celery's "Canvas: Designing Work-flows" guide. `chunks`, `xmap` and `xstarmap` are not there yet.
"""

from __future__ import annotations

from taskmq.compat._missing import missing_names
from taskmq.compat.canvas.chain import chain
from taskmq.compat.canvas.chord import chord
from taskmq.compat.canvas.group import group
from taskmq.compat.canvas.signature import Signature, maybe_signature, signature

__all__ = (
    "Signature",
    "chain",
    "group",
    "chord",
    "signature",
    "subtask",
    "maybe_signature",
    "COMPOSITIONS",
)

__getattr__ = missing_names("canvas")
subtask = signature
#: What a mapping with a `subtask_type` becomes.
COMPOSITIONS = {"chain": chain, "group": group, "chord": chord}
