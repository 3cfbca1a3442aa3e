"""Waking: a commit of somebody else ends a wait, one of our own does not."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from taskmq.bell import readable
from taskmq.transports.sqlite import SQLiteTransport, wake
from taskmq.transports.sqlite.wake import Watch, wait_for_change
from tests.support.waiting import wait_until

LONG = 30.0


@pytest.fixture(params=["inotify", "polling"])
def other(request: pytest.FixtureRequest, path: Path, transport, monkeypatch):
    """A second transport on the file, woken by inotify or, where there is none, by looking."""
    if request.param == "polling":
        monkeypatch.setattr(sys, "platform", "darwin")
    other = SQLiteTransport(path)
    other.open()
    other.wait(0)  # the first one returns at once
    yield other
    other.close()


class WaitingThread(threading.Thread):
    """A thread that has looked once, and now waits; `woken` is what its wait says."""

    def __init__(self, transport: SQLiteTransport, fds=(), purpose: str = "work") -> None:
        super().__init__(daemon=True)
        self.waiter = transport._waiter
        self.arguments = {"fds": fds, "purpose": purpose}
        self.looked = threading.Event()
        self.woken: bool | None = None
        self.start()
        assert self.looked.wait(10)

    def run(self) -> None:
        # A thread's first wait returns at once.
        self.waiter.wait(0, **self.arguments)
        self.looked.set()
        self.woken = self.waiter.wait(LONG, **self.arguments)

    def ended(self) -> bool | None:
        self.join(10)
        assert not self.is_alive()
        return self.woken


@pytest.mark.parametrize("purpose", ["work", "result"])
def test_a_commit_of_another_connection_ends_the_wait(
    transport, other, bench, purpose: str
) -> None:
    thread = WaitingThread(other, purpose=purpose)
    transport.submit([bench.message("a")])

    assert thread.ended() is True


def test_a_commit_of_another_thread_ends_the_wait(other, bench) -> None:
    thread = WaitingThread(other)
    other.submit([bench.message("a")])

    assert thread.ended() is True


def test_a_commit_of_our_own_does_not(other, bench) -> None:
    other.submit([bench.message("a")])

    assert other._waiter.wait(0.02) is False


def test_what_came_between_a_look_and_the_wait_is_not_slept_over(transport, other, bench) -> None:
    transport.submit([bench.message("a")])

    assert other._waiter.wait(LONG) is True
    assert other._waiter.wait(0) is False


def test_a_wait_for_a_result_hides_no_work(transport, other, bench) -> None:
    other._waiter.wait(0, purpose="result")
    transport.submit([bench.message("a")])

    assert other._waiter.wait(LONG, purpose="result") is True
    assert other._waiter.wait(LONG, purpose="work") is True


def test_a_descriptor_of_the_caller_ends_the_wait(other) -> None:
    reader, writer = os.pipe()
    thread = WaitingThread(other, fds=[reader])
    os.write(writer, b"!")

    assert thread.ended() is False
    assert os.read(reader, 1) == b"!"  # it is left to the caller
    os.close(reader)
    os.close(writer)


def test_it_ends_by_itself_after_its_time(other) -> None:
    assert other._waiter.wait(0.01) is False


def test_a_result_of_another_process_ends_its_wait(transport, other, bench) -> None:
    transport.submit([bench.message("a")])
    found = []
    thread = threading.Thread(target=lambda: found.extend(other.results.wait(["a"], LONG)))
    thread.start()
    (delivery,) = transport.reserve(bench.request())
    transport.settle([bench.succeeded(delivery)])
    thread.join(10)

    assert found == ["a"]


# -- the watch itself -----------------------------------------------------------------------------


def changes(watch: Watch) -> bool:
    return watch.fd is not None and watch.fd in readable([watch.fd], 10) and watch.drain()


def test_a_file_that_comes_later_is_watched_from_then_on(tmp_path: Path) -> None:
    file = tmp_path / "file"
    watch = Watch(str(file))
    assert not watch.active
    file.touch()

    assert watch.active
    file.write_bytes(b"x")
    assert changes(watch)


def test_a_file_that_was_deleted_and_made_again_is_watched_again(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    watch = Watch(str(file))
    file.unlink()
    assert changes(watch)
    file.touch()

    assert watch.active
    file.write_bytes(b"x")
    assert changes(watch)


def test_without_inotify_instances_left_it_looks_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Exhausted:
        def inotify_init1(self, flags: int) -> int:
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Exhausted())
    watch = Watch(str(tmp_path / "file"))
    looks = iter([False, False, True])

    assert not watch.active
    wait_for_change(watch, lambda: next(looks), LONG)

    assert next(looks, None) is None


def test_a_commit_that_counts_long_after_its_bell_is_looked_for_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    watch = Watch(str(file))
    file.write_bytes(b"x")
    waits: list[float] = []

    def wait(fds: Sequence[int], timeout: float) -> set[int]:
        waits.append(timeout)
        return readable(fds, 0)

    monkeypatch.setattr(wake, "readable", wait)
    wait_for_change(watch, lambda: len(waits) == 12, LONG)

    assert waits == [*(0.001 * 2**n for n in range(9)), 0.5, 0.5, 0.5]


def test_while_a_commit_is_half_written_the_callers_descriptors_are_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    watch = Watch(str(file))
    reader, writer = os.pipe()
    looks = 0

    def changed() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            file.write_bytes(b"a page")  # rings, and counts only later
        elif looks == 2:
            os.write(writer, b"!")
        return False

    def deaf(seconds: float) -> None:
        raise AssertionError("it slept, and would not have heard anything")

    monkeypatch.setattr("taskmq.transports.sqlite.wake.time.sleep", deaf)
    wait_for_change(watch, changed, LONG, [reader])

    assert looks == 2
    os.close(reader)
    os.close(writer)


def test_a_watch_is_closed_with_the_last_who_refers_to_it(tmp_path: Path) -> None:
    watch = Watch(str(tmp_path))
    fd = watch.fd
    assert fd is not None
    del watch

    wait_until(lambda: not os.path.exists(f"/proc/self/fd/{fd}"))
