"""A hook in a forked child, held weakly so that a closed object costs nothing."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable
from typing import Any


def in_child(method: Callable[[], None]) -> None:
    """Call a bound method in every child this process forks, for as long as its object lives."""
    if not hasattr(os, "register_at_fork"):  # Windows does not fork
        return
    reference: Any = weakref.WeakMethod(method)

    def abandon() -> None:
        alive = reference()
        if alive is not None:
            alive()

    os.register_at_fork(after_in_child=abandon)


def leak(connection: sqlite3.Connection) -> None:
    """Keep an inherited connection for ever.

    Closing it in the child, which collecting it would do, could checkpoint and delete files that the
    parent is using.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
