"""A file system of a few megabytes, and one that only says it has no more (rows 9 and 10)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from taskmq.transports.sqlite import SQLiteTransport


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A tmpfs of this size; skips the test where it cannot be mounted."""
    if not sys.platform.startswith("linux") or os.getuid() != 0:
        pytest.skip("only root on Linux can mount a small file system; the others stand in for it")
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this container may not mount file systems")
    try:
        yield place
    finally:
        # Lazily: a process that a failed test left behind must not keep it.
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    """Take the last block of the file system, as another program would; the file that did."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as out:
        for size in (65536, 4096, 1):
            try:
                while True:
                    out.write(b"x" * size)
            except OSError:
                pass
    return filler


def limit_pages(transport: SQLiteTransport, more: int = 0) -> None:
    """No more pages than the file has, or so many more: what a full device does, without one."""
    connection = transport._store._writer
    assert connection is not None
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count={pages + more}").fetchall()


def lift_limit(transport: SQLiteTransport) -> None:
    connection = transport._store._writer
    assert connection is not None
    connection.execute("PRAGMA max_page_count=1000000").fetchall()
