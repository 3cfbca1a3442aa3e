"""What makes a process a good pool child: signals, descriptors, core files, its parent's death."""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import resource
import signal
import socket
import sys
from types import FrameType

from taskmq.pools.handlers import GROUP_SIGNALS

_HIGH = 200
_PR_SET_PDEATHSIG = 1


def leave_group_signals() -> None:
    """Leave what a terminal or a service manager sends to the whole group to the coordinator.

    By handlers and not by SIG_IGN, which a task's own subprocesses would inherit.
    """
    for number in GROUP_SIGNALS:
        signal.signal(number, _left_to_coordinator)


def _left_to_coordinator(number: int, frame: FrameType | None) -> None:
    """The coordinator gets the signal as well and says what happens."""


def be_a_child(parent: int) -> None:
    """Set up a process that was just forked or spawned by `parent`."""
    die_with(parent)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except (OSError, ValueError):
        pass  # a lower hard limit is as good
    try:
        # On a descriptor of its own: a task that closes 2 may get the number back with a file of its own.
        faulthandler.enable(_high(_log_descriptor()))
    except (AttributeError, OSError, ValueError, RuntimeError):
        pass  # stderr is closed or has no descriptor: a crash is then reported by its signal alone


def _log_descriptor() -> int:
    """Where the trace of a crash is looked for: in the log file if there is one, else on stderr."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler) and handler.stream is not None:
            return handler.stream.fileno()
    return sys.stderr.fileno()


def die_with(parent: int) -> None:
    """Have the kernel kill this process when `parent` ends; elsewhere than Linux the closed pipe ends it."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        except (OSError, AttributeError):
            pass  # a libc without it: as on the other systems
    if os.getppid() != parent:
        # It ended before the line above took effect.
        os._exit(0)


def high_descriptor(sock: socket.socket) -> socket.socket:
    """The same socket on a descriptor from 200 up, closed on exec."""
    number = _high(sock.fileno())
    if number == sock.fileno():
        return sock
    moved = socket.socket(fileno=number)
    sock.close()
    return moved


def _high(fd: int) -> int:
    import fcntl

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except OSError:
        return fd  # the process may open fewer than that


def lowest_descriptor(fd: int) -> int:
    """The lowest number that is free, by copying `fd`: it climbs when descriptors leak."""
    try:
        number = os.dup(fd)
    except OSError:
        return 1 << 20  # none is left
    os.close(number)
    return number


def memory_kib() -> int:
    """Resident memory of this process in KiB: now on Linux, the most it had elsewhere."""
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most // 1024 if sys.platform == "darwin" else most
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024
