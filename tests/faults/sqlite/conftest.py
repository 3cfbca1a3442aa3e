"""Actors: real processes on one database file, every one of them reaped."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from taskmq.transports.sqlite import SQLiteTransport
from tests.faults.sqlite.actors import ROOT
from tests.support.processes import Processes, processes
from tests.support.waiting import wait_until

Start = Callable[..., "Actor"]


class Actor:
    """One process and what it has said."""

    def __init__(
        self,
        started: Processes,
        path: Path,
        name: str,
        *arguments: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._started = started
        self.name = name
        self.process: subprocess.Popen[str] = started.python(
            "-m",
            "tests.faults.sqlite.actors",
            name,
            str(path),
            *arguments,
            env={"PYTHONPATH": str(ROOT), **(env or {})},
            name=name,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def lines(self) -> list[str]:
        """What it said; a last line torn by its death is left out."""
        return self._started.log(self.process).rpartition("\n")[0].splitlines()

    def said(self, word: str) -> list[str]:
        """The rest of each line that begins with this word."""
        return [line[len(word) :].strip() for line in self.lines() if line.startswith(word)]

    def until(self, word: str, timeout: float = 20.0) -> str:
        """Wait until it says a word; the rest of that line."""

        def look() -> list[str]:
            found = self.said(word)
            assert found or self.process.poll() is None, self._started.log(self.process)
            return found

        return wait_until(look, timeout, what=f"{word!r} from {self.name}")[0]

    def until_many(self, word: str, count: int) -> None:
        """Wait until it has said a word so many times."""
        wait_until(lambda: len(self.said(word)) >= count, 20, what=f"{word!r} from {self.name}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
def actor(tmp_path: Path, path: Path) -> Iterator[Start]:
    with processes(tmp_path) as started:
        yield lambda name, *arguments, env=None: Actor(
            started, path, name, *map(str, arguments), env=env
        )


@pytest.fixture
def transport(path: Path) -> Iterator[SQLiteTransport]:
    transport = SQLiteTransport(path)
    transport.open()
    yield transport
    transport.close()
