"""The waker: what rang before a wait counts, and every thread has a bell of its own."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator

import pytest

from taskmq.bell import readable
from taskmq.transports.memory.waker import Waker
from tests.support.waiting import wait_until

# A wait this long means that nobody rang; pytest's own timeout ends the test before.
LONG = 600.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_the_first_wait_of_a_thread_returns_at_once() -> None:
    Waker().wait(LONG, [])


def test_what_rang_before_the_wait_ends_it() -> None:
    waker = Waker()
    waker.wait(LONG, [])

    waker.wake()

    waker.wait(LONG, [])


def test_many_rings_end_one_wait(pipe: tuple[int, int]) -> None:
    waker = Waker()
    waker.wait(LONG, [])
    for _ in range(100_000):
        waker.wake()
    waker.wait(LONG, [])

    # All of them are gone: only the descriptor ends the next wait.
    os.write(pipe[1], b"x")
    waker.wait(LONG, [pipe[0]])
    assert readable([pipe[0]], 0) == {pipe[0]}


def test_every_waiting_thread_is_woken() -> None:
    waker = Waker()
    waiting: list[int] = []
    woken: list[int] = []

    def wait(number: int) -> None:
        waker.wait(LONG, [])
        waiting.append(number)
        waker.wait(LONG, [])
        woken.append(number)

    threads = [threading.Thread(target=wait, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(waiting) == 3)
    waker.wake()
    for thread in threads:
        thread.join()

    assert sorted(woken) == [0, 1, 2]


def test_the_bell_of_a_thread_is_closed_with_it() -> None:
    waker = Waker()
    before = len(os.listdir("/dev/fd"))
    thread = threading.Thread(target=waker.wait, args=(0, []))
    thread.start()
    thread.join()
    gc.collect()

    assert len(os.listdir("/dev/fd")) == before


def test_nothing_is_readable_after_the_timeout(pipe: tuple[int, int]) -> None:
    assert readable([pipe[0]], 0.01) == set()
