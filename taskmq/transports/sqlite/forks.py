"""What happens around a fork, held weakly so that a closed object costs nothing."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable
from typing import Any

Hook = Callable[[], None]


def around(*, in_child: Hook, before: Hook | None = None, in_parent: Hook | None = None) -> None:
    """Call bound methods around every fork of this process, for as long as their object lives."""
    if not hasattr(os, "register_at_fork"):  # Windows does not fork
        return
    os.register_at_fork(
        before=_weakly(before), after_in_parent=_weakly(in_parent), after_in_child=_weakly(in_child)
    )


def _weakly(method: Hook | None) -> Hook:
    reference: Any = (lambda: None) if method is None else weakref.WeakMethod(method)

    def call() -> None:
        alive = reference()
        if alive is not None:
            alive()

    return call


def leak(connection: sqlite3.Connection) -> None:
    """Keep an inherited connection for ever.

    Closing it in the child, which collecting it would do, could checkpoint and delete files that the
    parent is using.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
