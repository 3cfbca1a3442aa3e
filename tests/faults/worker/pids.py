"""Processes of the system, by their numbers."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody reaps does not (reliability fact 14)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def states(pid: int) -> set[str]:
    """The states of a process's threads, as the kernel has them."""
    stats = [(t / "stat").read_text() for t in Path(f"/proc/{pid}/task").iterdir()]
    return {stat.rpartition(")")[2].split()[0] for stat in stats}


def children(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    found = [int(c) for t in threads for c in (t / "children").read_text().split()]
    return [child for child in found if alive(child)]


def kill(pid: int | str, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(int(pid), number)
