"""The write lock: it excludes, it waits a bounded time, and it names who holds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskmq.errors import TransportUnavailable
from taskmq.transports.sqlite.lock import FileLock


class Waiting:
    """A clock of the lock's own that moves only while it sleeps."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def lock(self, path: Path, timeout: float = 1.0) -> FileLock:
        return FileLock(str(path), timeout=timeout, sleep=self.sleep, monotonic=lambda: self.time)


@pytest.fixture
def lockfile(tmp_path: Path) -> Path:
    return tmp_path / "queue.db.lock"


def test_one_that_is_free_is_taken_without_waiting(lockfile: Path) -> None:
    waiting = Waiting()
    lock = waiting.lock(lockfile)

    lock.acquire()
    lock.release()
    lock.acquire()

    assert waiting.slept == []
    lock.close()


def test_two_of_one_process_exclude_each_other(lockfile: Path) -> None:
    waiting = Waiting()
    first, second = waiting.lock(lockfile), waiting.lock(lockfile)
    first.acquire()

    with pytest.raises(TransportUnavailable):
        second.acquire()
    first.release()
    second.acquire()

    first.close()
    second.close()


def test_it_waits_for_as_long_as_it_was_told_in_short_steps(lockfile: Path) -> None:
    waiting = Waiting()
    first, second = waiting.lock(lockfile), waiting.lock(lockfile, timeout=0.5)
    first.acquire()

    with pytest.raises(TransportUnavailable, match=r"within 0\.5 s"):
        second.acquire()

    assert 0.5 <= waiting.time < 0.51
    assert max(waiting.slept) <= 0.002
    first.close()
    second.close()


def test_it_is_taken_as_soon_as_it_is_released(lockfile: Path) -> None:
    waiting = Waiting()
    first = waiting.lock(lockfile)
    first.acquire()

    def sleep(seconds: float) -> None:
        waiting.sleep(seconds)
        if len(waiting.slept) == 3:
            first.release()

    second = FileLock(str(lockfile), sleep=sleep, monotonic=lambda: waiting.time)
    second.acquire()

    assert len(waiting.slept) == 3
    first.close()
    second.close()


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the kernel does not say who holds it")
def test_the_holder_is_named(lockfile: Path) -> None:
    waiting = Waiting()
    first, second = waiting.lock(lockfile), waiting.lock(lockfile)
    first.acquire()

    with pytest.raises(TransportUnavailable, match=rf"process {os.getpid()} \(.*running\)"):
        second.acquire()

    first.close()
    second.close()


def test_closing_gives_it_up_and_acquiring_opens_it_again(lockfile: Path) -> None:
    waiting = Waiting()
    first, second = waiting.lock(lockfile), waiting.lock(lockfile)
    first.acquire()
    first.close()
    second.acquire()
    second.release()

    first.acquire()

    first.close()
    second.close()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path, lockfile: Path) -> None:
    target = tmp_path / "target"
    lockfile.symlink_to(target)

    with pytest.raises(TransportUnavailable, match="lock file"):
        FileLock(str(lockfile)).acquire()
    assert not target.exists()
