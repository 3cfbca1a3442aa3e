"""The write lock of a database: an OS lock on a file beside it, around everything that writes.

Why not SQLite's own busy handler: measured over 4 processes it starves callers for up to a second and
lets the WAL grow tenfold, because its sleepers queue nowhere and checkpoints find no gap. And with every
checkpoint inside this lock, SQLite's WAL-reset bug (3.7.0 to 3.51.2) has no second writer to meet.

It belongs to an open file description, so two transports of one process exclude each other too. A child
that inherits the descriptor would keep the lock of a parent killed inside it: `abandon` closes it there.
The lock is only ever tried, never waited for in the kernel, so that a stopped holder ends in an error
that names it.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from random import Random

from taskmq.errors import TransportUnavailable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# A transaction takes some 50-100 us: the first tries come fast, the later ones leave the CPU alone.
_FIRST_WAIT = 0.00005
_LONGEST_WAIT = 0.002
# Who held it for so long lets others have it first: they look every 2 ms, and one that takes it again within
# 50 us would keep them out (measured, a disk of 200 ms a commit: 1.6 s in the middle, 5 s at most).
_LONG_HOLD = 0.02
_TURN = 1.5 * _LONGEST_WAIT


class FileLock:
    """One descriptor of the lock file. Not thread-safe: the store's mutex stands before it."""

    def __init__(
        self,
        path: str,
        *,
        mode: int = 0o600,
        timeout: float = 10.0,
        random: Random | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        # The machine's own clock: a virtual one does not move while another process writes.
        self.path = path
        self._mode = mode
        self._timeout = timeout
        self._random = random or Random()
        self._sleep = sleep
        self._monotonic = monotonic
        self._fd: int | None = None
        self._file: tuple[int, int] | None = None
        # When it was taken, and until when it is others' turn.
        self._taken_at = 0.0
        self._others_until = 0.0
        #: Said before it is taken: an interrupt may come between the taking and any word about it.
        self.maybe_held = False

    def acquire(self) -> None:
        """Take the lock; `TransportUnavailable` naming the holder after `timeout` seconds.

        Called inside the `try` whose `finally` releases: interrupted, it may hold the lock or not.
        """
        fd = self._fd
        if fd is None:
            fd = self._fd = self._open()
        self.maybe_held = True
        try:
            if self._others_until:
                self._let_others()
            if not _try(fd):
                self._wait(fd)
        except TransportUnavailable:
            self.maybe_held = False
            raise
        self._taken_at = self._monotonic()

    def release(self) -> None:
        """Give the lock up, if it is held."""
        if self.maybe_held and self._fd is not None:
            _unlock(self._fd)
            now = self._monotonic()
            if now - self._taken_at > _LONG_HOLD:
                self._others_until = now + _TURN
        self.maybe_held = False

    def _let_others(self) -> None:
        left = self._others_until - self._monotonic()
        self._others_until = 0.0
        if left > 0:
            self._sleep(left)

    def close(self) -> None:
        """Give up lock and descriptor; `acquire` opens it again."""
        fd, self._fd = self._fd, None
        self.maybe_held = False
        if fd is not None:
            os.close(fd)

    def current(self) -> bool:
        """Whether the lock file that is open is the one its name leads to; True while none is open."""
        if self._fd is None or fcntl is None:
            return True  # Windows deletes no file that is open
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise TransportUnavailable(f"the lock file {self.path}: {exc}") from exc
        return (found.st_dev, found.st_ino) == self._file

    def renew(self) -> None:
        """Give up a file that was deleted or replaced, and take the lock of the one that is there now."""
        self.close()
        self.acquire()

    def abandon(self) -> None:
        """In a forked child: drop the inherited descriptor, so that it cannot keep the parent's lock."""
        self.close()

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            fd = os.open(self.path, flags, self._mode)
        except OSError as exc:
            uid = f" by user {os.getuid()}" if hasattr(os, "getuid") else ""
            raise TransportUnavailable(
                f"the lock file {self.path} cannot be opened{uid}: {exc.strerror}"
            ) from exc
        found = os.fstat(fd)
        self._file = found.st_dev, found.st_ino
        try:
            # The umask would take the group's bit away from a shared database.
            if found.st_mode & 0o777 != self._mode:
                os.fchmod(fd, self._mode)
        except (OSError, AttributeError):
            pass  # another user's file: its permissions were enough to open it
        return fd

    def _wait(self, fd: int) -> None:
        deadline = self._monotonic() + self._timeout
        wait = _FIRST_WAIT
        while True:
            # Jitter, or processes that met once would meet again at each try.
            self._sleep(wait * self._random.uniform(0.5, 1.0))
            if _try(fd):
                return
            if self._monotonic() >= deadline:
                raise TransportUnavailable(
                    f"the write lock {self.path} is held by {_holder(fd)} "
                    f"and was not released within {self._timeout:g} s"
                )
            wait = min(wait * 1.5, _LONGEST_WAIT)


def _try(fd: int) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            os.lseek(fd, 0, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
    except OSError as exc:
        if exc.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK, errno.EINTR):
            return False
        raise TransportUnavailable(f"the write lock cannot be taken: {exc}") from exc
    return True


def _unlock(fd: int) -> None:
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_UN)
    else:
        import msvcrt

        os.lseek(fd, 0, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        except OSError:
            pass  # it was not held: the taking was interrupted


def _holder(fd: int) -> str:
    """The process that holds the lock, as far as the kernel says (Linux, same pid namespace)."""
    try:
        inode = os.fstat(fd).st_ino
        with open("/proc/locks", encoding="ascii", errors="replace") as table:
            for line in table:
                fields = line.split()
                # "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"; a waiting one has "->" second.
                if len(fields) < 6 or fields[1] != "FLOCK" or not fields[5].endswith(f":{inode}"):
                    continue
                return f"process {fields[4]}{_command(fields[4])}"
    except (OSError, ValueError):
        pass
    return "another process"


def _command(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            text = stat.read()
    except OSError:
        return ""
    name = text[text.index("(") + 1 : text.rindex(")")]
    state = text[text.rindex(")") + 2 : text.rindex(")") + 3]
    return f" ({name}, {'stopped' if state in 'Tt' else 'running'})"
