"""The files of a database: who may read them, where they may be, and whether they are still ours.

Created 0600 with O_EXCL and O_NOFOLLOW; SQLite gives the -wal and -shm files the same permissions.
"""

from __future__ import annotations

import itertools
import logging
import os
import stat
import sys
from pathlib import Path

from taskmq.errors import ConfigError, TransportCorrupt, TransportUnavailable
from taskmq.transports.sqlite.options import SQLiteOptions

log = logging.getLogger("taskmq.sqlite")

# What statfs calls file systems on which SQLite's shared memory or locks are not reliable.
_NETWORK = {
    0x6969: "NFS",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB",
    0x517B: "SMB",
    0x5346414F: "AFS",
    0x01021997: "9P",
    0x00C36400: "Ceph",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
}


# The smallest page of an SQLite file.
_SMALLEST = 512

#: Which file a path leads to (device, inode): a name can come to mean another one.
Identity = tuple[int, int]


def identity(path: str) -> Identity | None:
    """The file at `path`, None when there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise TransportUnavailable(f"{path}: {exc.strerror}") from exc
    return found.st_dev, found.st_ino


def check_place(path: Path, options: SQLiteOptions) -> None:
    """Raise `ConfigError` for a place no database should be in. Changes nothing."""
    directory = path.parent
    if not directory.is_dir():
        raise ConfigError(
            f"the directory {directory} of the database {path.name} does not exist; create it, or set "
            "TASKMQ_HOME or broker_url to another place"
        )
    network = network_file_system(str(directory))
    if network and not options.network_fs:
        raise ConfigError(
            f"{path} is on a network file system ({network}), where SQLite's locks do not protect a "
            "database shared by several machines; put it on a local disk, or add ?network_fs=allow "
            "to the URL when only one machine uses it"
        )
    _check_directory(path)
    if path.is_symlink() and not path.exists():
        raise ConfigError(f"{path} is a symbolic link to nowhere; it is not followed")
    if path.exists():
        if not path.is_file():
            raise ConfigError(f"{path} is not a regular file")
        if 0 < path.stat().st_size < _SMALLEST:
            # SQLite would take a file this short for an empty one and write over it.
            raise TransportCorrupt(f"{path} is not a database: it was not changed")


def check_link(path: Path) -> None:
    """Raise `ConfigError` for a link that is not followed: one to nowhere, or one that a stranger laid."""
    if not path.is_symlink():
        return
    if not path.exists():
        raise ConfigError(f"{path} is a symbolic link to nowhere; it is not followed")
    if not hasattr(os, "getuid") or not os.stat(path.parent).st_mode & stat.S_IWOTH:
        return
    owner = os.lstat(path).st_uid
    if not _trusted(owner):
        raise ConfigError(
            f"{path} is a symbolic link of user {owner}, and everybody may write in {path.parent}; "
            "it is not followed"
        )


def create(path: Path, mode: int) -> bool:
    """Create the file if there is none; whether this call did. The caller holds the write lock.

    Raises `TransportUnavailable` where it cannot be made.
    """
    if path.exists():
        return False
    _set_aside(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        fd = os.open(path, flags, mode)
    except OSError as exc:
        uid = f" by user {os.getuid()}" if hasattr(os, "getuid") else ""
        raise TransportUnavailable(f"{path} cannot be created{uid}: {exc.strerror}") from exc
    try:
        if hasattr(os, "fchmod"):
            os.fchmod(fd, mode)  # whatever the umask is
    finally:
        os.close(fd)
    return True


def _set_aside(path: Path) -> None:
    """Keep what a database that was deleted or moved alone left behind away from the new one.

    A process may have them open still: the new database would share its memory with the old one. And the
    log may hold the last commits of a database that was only moved.
    """
    memory, left = Path(f"{path}-shm"), Path(f"{path}-wal")
    memory.unlink(missing_ok=True)
    if not left.exists():
        return
    if left.stat().st_size == 0:
        left.unlink()
        return
    kept = next(
        name for n in itertools.count(1) if not (name := Path(f"{left}.orphan{n}")).exists()
    )
    left.rename(kept)
    log.warning(
        "%s was left behind by a database that is gone; it is kept as %s. If that database was moved, put it "
        "beside it under the name of its log",
        left,
        kept.name,
        extra={"action": "orphan-log"},
    )


def _check_directory(path: Path) -> None:
    if not hasattr(os, "getuid"):
        return
    directory = os.stat(path.parent)
    if not directory.st_mode & stat.S_IWOTH:
        return
    if not directory.st_mode & stat.S_ISVTX:
        raise ConfigError(
            f"everybody may write in {path.parent}, so anybody could replace the database {path.name}; "
            "use a directory of your own"
        )
    # In a sticky directory such as /tmp a file that is ours stays ours; one laid there before is not.
    for suffix in ("", "-wal", "-shm", ".lock"):
        try:
            found = os.lstat(f"{path}{suffix}")
        except FileNotFoundError:
            continue
        if not _trusted(found.st_uid):
            raise ConfigError(
                f"{path}{suffix} belongs to user {found.st_uid}, and everybody may write in "
                f"{path.parent}; use a directory of your own"
            )


def _trusted(uid: int) -> bool:
    return uid in (os.getuid(), 0)


def network_file_system(directory: str) -> str | None:
    """The name of the network file system a directory is on; None on a local one or if unknown."""
    if not sys.platform.startswith("linux"):
        return None
    kind = _statfs_type(directory)
    return _NETWORK.get(kind) if kind is not None else None


def _statfs_type(directory: str) -> int | None:
    import ctypes

    # struct statfs begins with f_type, a long on every 64-bit Linux; the rest is not read.
    buffer = ctypes.create_string_buffer(512)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.statfs(os.fsencode(directory), buffer) != 0:
        return None
    return int(ctypes.c_ulong.from_buffer(buffer).value) & 0xFFFFFFFF
