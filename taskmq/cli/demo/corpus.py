"""Which files the demo works on: sources of the running Python's standard library."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from taskmq.errors import ConfigError

# Tests and tools hold files that are broken on purpose or by far larger than the rest.
_SKIPPED = frozenset(
    {
        "site-packages",
        "dist-packages",
        "test",
        "tests",
        "__pycache__",
        "lib2to3",
        "idlelib",
        "turtledemo",
        "_bundled",
    }
)
# A running task is never interrupted, so the longest job bounds how soon an urgent one can start.
_LARGEST = 64 * 1024
_SMALLEST = 512


def library() -> Path:
    """Where the standard library's sources are."""
    return Path(sysconfig.get_paths()["stdlib"])


def files(count: int, root: Path | None = None) -> list[str]:
    """At most `count` source files below `root`, spread evenly over them, as sorted relative paths.

    The same on every run of one Python. Raises `ConfigError` where there are no sources.
    """
    root = root or library()
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in names:
            path = Path(folder, name)
            if name.endswith(".py") and _SMALLEST <= path.stat().st_size <= _LARGEST:
                found.append(path.relative_to(root).as_posix())
    if not found:
        raise ConfigError(f"the demo reads the standard library's sources, but {root} holds none")
    found.sort()
    if len(found) <= count:
        return found
    return [found[i * len(found) // count] for i in range(count)]
