"""A pid file that a dead worker cannot leave behind as an obstacle: what counts is a lock, not the number."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from taskmq.errors import ConfigError, TaskMQError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class PidFileHeld(TaskMQError):
    """A live process holds the pid file."""


class PidFile:
    """`with PidFile(path):` holds the file for as long as the process lives; a stale one is taken over.

    Raises `PidFileHeld`; `ConfigError` where the file cannot be made or the system has no such locks.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._descriptor: int | None = None

    def __enter__(self) -> PidFile:
        locks: Any = fcntl
        if locks is None:
            raise ConfigError("--pidfile is not there on this system")
        while self._descriptor is None:
            descriptor = self._open()
            try:
                # A record lock: forked pool children do not inherit it, so a killed worker frees it at
                # once even where a child outlives it. A flock would stay with the child.
                locks.lockf(descriptor, locks.LOCK_EX | locks.LOCK_NB)
            except OSError:
                holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
                os.close(descriptor)
                raise PidFileHeld(
                    f"{self.path} is held by a live worker" + (f", pid {holder}" if holder else "")
                ) from None
            if self._same_file(descriptor):
                self._descriptor = descriptor
            else:
                # Its last holder removed it between our open and our lock.
                os.close(descriptor)
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, f"{os.getpid()}\n".encode())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            # Removed while it is locked, so that nobody takes over a name that is about to go.
            os.unlink(self.path)
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        # Not through a link: in a directory such as /tmp anybody could have us empty one of our own files.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        try:
            return os.open(self.path, flags, 0o644)
        except OSError as error:
            raise ConfigError(f"--pidfile {self.path}: {error.strerror}") from None

    def _same_file(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self.path))
        except FileNotFoundError:
            return False
