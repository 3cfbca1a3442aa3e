"""A process and all that descends from it: what it uses, and its end. Linux, from /proc."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_KIB = 1024


class Tree:
    """The processes at and under `root` at each look; one that ends meanwhile counts as nothing."""

    def __init__(self, root: int) -> None:
        self.root = root

    def pids(self) -> list[int]:
        """The root and its descendants, parents first."""
        found, todo = [], [self.root]
        while todo:
            pid = todo.pop(0)
            found.append(pid)
            todo += _children(pid)
        return found

    def rss(self) -> int:
        """The sum of resident sizes, in bytes: what `top` adds up, so shared pages count once per process."""
        return sum(rss(pid) for pid in self.pids())

    def pss(self) -> int:
        """The sum of proportional sizes, in bytes: a page shared by n processes counts 1/n in each."""
        return sum(_kib(pid, "smaps_rollup", "Pss:") for pid in self.pids()) * _KIB

    def cpu(self) -> float:
        """Seconds that the threads which are alive now have run on a CPU, to the nanosecond."""
        return sum(_ran(pid) for pid in self.pids())


def rss(pid: int) -> int:
    """The resident size of one process, in bytes."""
    return _kib(pid, "status", "VmRSS:") * _KIB


def descriptors(pid: int) -> int:
    """The open file descriptors of one process."""
    return sum(1 for _ in _names(f"/proc/{pid}/fd"))


def stop(process: subprocess.Popen[bytes], within: float = 20.0) -> None:
    """TERM, then kill what is left of the tree; returns when all of it is gone."""
    tree = [(pid, _started(pid)) for pid in Tree(process.pid).pids()]
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(within)
    # Children that a parent without manners left behind. A pid used anew has another start.
    for pid, began in tree:
        if began and _started(pid) == began:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    deadline = time.monotonic() + within
    while any(began and _started(pid) == began for pid, began in tree):
        if time.monotonic() > deadline:
            raise RuntimeError(f"processes {[pid for pid, _ in tree]} do not end")
        time.sleep(0.01)


def _children(pid: int) -> list[int]:
    text = (_read(f"/proc/{pid}/task/{thread}/children") for thread in _names(f"/proc/{pid}/task"))
    return [int(child) for line in text for child in line.split()]


def _ran(pid: int) -> float:
    spent = (_read(f"/proc/{pid}/task/{t}/schedstat").split() for t in _names(f"/proc/{pid}/task"))
    return sum(int(fields[0]) for fields in spent if fields) / 1e9


def _kib(pid: int, file: str, label: str) -> int:
    for line in _read(f"/proc/{pid}/{file}").splitlines():
        if line.startswith(label):
            return int(line.split()[1])
    return 0


def _started(pid: int) -> str:
    """When it started, in ticks since boot; nothing for one that is gone or waits to be reaped."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if fields and fields[0] not in "ZX" else ""


def _names(path: str) -> Iterator[str]:
    try:
        yield from os.listdir(path)
    except OSError:
        return


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
