"""What happens around a fork, held weakly so that a closed object costs nothing."""

from __future__ import annotations

import os
import sqlite3
import sys
import weakref
from collections.abc import Callable
from typing import Any

# Where SQLite's connections lock the database and its shared memory for as long as they live (its file
# format, and `DMS` in os_unix.c): file, first byte, number of bytes.
_STANDING_LOCKS = (("", 0x40000002, 510), ("-shm", 128, 1))

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


def take_over(path: str) -> bool:
    """In a forked child: take the locks that the connections inherited from the parent believe they hold.

    The kernel gives a child no locks, yet SQLite in it goes on as if it had the parent's, and every new
    connection relies on them. Once the parent is gone, others would then find themselves alone with the
    database and remove the log under the child. False where somebody is just doing that.
    """
    if sys.platform == "win32":
        return True
    import fcntl

    for suffix, start, length in _STANDING_LOCKS:
        try:
            # Never closed: closing any descriptor of a file gives up all locks of this process on it.
            fd = os.open(f"{path}{suffix}", os.O_RDONLY | os.O_CLOEXEC)
            fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, length, start)
        except OSError:
            return False
    return True
