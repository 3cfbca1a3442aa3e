"""What the guard tells a reader, who asks it without the mutex, while a writer learns of other files."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from taskmq.transports.sqlite import guard
from taskmq.transports.sqlite.files import Identity, identity
from taskmq.transports.sqlite.guard import Guard
from taskmq.transports.sqlite.lock import FileLock

NAMES = ("q.db", "q.db-wal", "q.db-shm")


def put_files(directory: Path) -> Guard:
    """Three files that take the places of those before, and what looks after them."""
    for name in NAMES:
        new = directory / f"new {name}"
        new.touch()
        new.rename(directory / name)
    path = str(directory / NAMES[0])
    return Guard(path, FileLock(f"{path}.lock", timeout=1.0, random=Random(1)))


@pytest.mark.parametrize("learned", range(3))
def test_files_that_are_being_learned_of_are_not_taken_for_lost_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learned: int
) -> None:
    mine = put_files(tmp_path)
    mine.learn()
    put_files(tmp_path)
    seen: list[str | None] = []
    left = [learned]

    def look(path: str) -> Identity | None:
        if left[0] == 0:
            left[0] = -1
            seen.append(mine.lost())
        left[0] -= 1
        return identity(path)

    monkeypatch.setattr(guard, "identity", look)
    mine.learn()
    assert seen == [None]
    assert mine.lost() is None


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_log_or_memory_of_the_same_database_that_is_gone_is_lost(
    tmp_path: Path, name: str
) -> None:
    mine = put_files(tmp_path)
    mine.learn()
    (tmp_path / name).unlink()
    assert mine.lost() == str(tmp_path / name)
