"""What the processes of a run write: one line per event, one `write` per line, so that it outlives a SIGKILL.

`t` is the machine's monotonic clock, the same for every process of a boot; the store's own times are the wall
clock's and are turned into it where they are logged.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]


class Log:
    """A file of events that any number of processes may append to; opened at the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def write(self, event: str, **fields: Any) -> None:
        """One event of this process, now."""
        line = json.dumps({"t": time.monotonic(), "pid": os.getpid(), "ev": event, **fields})
        if self._fd is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._fd = os.open(self._path, flags, 0o600)
        os.write(self._fd, line.encode() + b"\n")

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def to_monotonic(wall: float) -> float:
    """A time of the wall clock on the monotonic one."""
    while True:
        before, monotonic, after = time.time(), time.monotonic(), time.time()
        # Stopped or set aside in between, a process would be wrong by as long as that.
        if 0 <= after - before < 0.000005:
            return wall - before + monotonic


def read_logs(directory: Path) -> list[Event]:
    """Every whole line of every log, in order; a torn last line of a killed writer is left out."""
    events = []
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            if line.endswith(b"}"):
                events.append(json.loads(line))
    return sorted(events, key=lambda e: e["t"])
