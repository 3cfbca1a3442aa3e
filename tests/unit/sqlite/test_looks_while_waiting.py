"""A worker's wait looks for commits by itself, so that no lost bell costs more than `poll_interval` (P15)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskmq.transports.base import Settings
from taskmq.transports.sqlite import SQLiteTransport, waiter, wake
from taskmq.transports.sqlite.wake import Watch, wait_for_change
from tests.unit.worker.values import message

LONG = 30.0


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float | None]]:
    """How long each wait of a transport would be at most, and how often it would look."""
    asked: list[tuple[float, float | None]] = []

    def wait(
        watch: Any, changed: Any, timeout: float, fds: Any = (), every: float | None = None
    ) -> None:
        asked.append((timeout, every))

    monkeypatch.setattr(waiter, "wait_for_change", wait)
    return asked


def test_a_silent_watch_is_not_relied_on_for_longer_than_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    waited: list[float] = []

    def silent(fds: Any, timeout: float) -> set[int]:
        waited.append(timeout)
        return set()

    monkeypatch.setattr(wake, "readable", silent)
    watch = Watch(str(file))
    if not watch.active:
        pytest.skip("no inotify here: it always looks by itself")
    looks = iter([False, False, True])

    wait_for_change(watch, lambda: next(looks), LONG, every=0.03)

    assert waited == [0.03, 0.03]


def test_a_transport_looks_every_poll_interval_of_its_settings(
    tmp_path: Path, waits: list[tuple[float, float | None]]
) -> None:
    transport = SQLiteTransport(tmp_path / "q.db", Settings(poll_interval=0.2))
    transport.open()
    transport.wait(0)
    transport.wait(LONG)
    transport.close()

    assert transport.looks_every == 0.2
    assert waits[-1] == (LONG, 0.2)


def test_the_first_wait_after_a_commit_of_our_own_ends_after_one_look(
    tmp_path: Path, waits: list[tuple[float, float | None]]
) -> None:
    transport = SQLiteTransport(tmp_path / "q.db")
    transport.open()
    transport.wait(0)
    waits.clear()
    transport.submit([message()])
    transport.wait(LONG)
    transport.wait(LONG)
    transport.close()

    assert waits == [(0.05, 0.05), (LONG, 0.05)]
