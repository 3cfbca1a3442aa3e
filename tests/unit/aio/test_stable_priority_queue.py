"""The queue for one event loop, and the four boundaries that are easily missed."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.aio import StablePriorityQueue
from taskmq.errors import ConfigError, PriorityError

T = TypeVar("T")


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 30))

    return run


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def drain(queue: StablePriorityQueue[T]) -> list[tuple[int, int, T]]:
    return [queue.get_nowait() for _ in range(queue.qsize())]


async def finished(task: Awaitable[T]) -> T:
    return await asyncio.wait_for(task, 10)


# -- the four boundaries ---------------------------------------------------------------------------


@in_a_loop
async def test_boundary_1_direction_larger_is_more_urgent() -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue()
    for priority in (0, 9, -9, 5, -1):
        await queue.put(priority, f"p{priority}")

    assert [priority for priority, _, _ in drain(queue)] == [9, 5, 0, -1, -9]


@in_a_loop
async def test_boundary_2_sequence_counts_the_puts_of_this_queue_alone() -> None:
    one: StablePriorityQueue[str] = StablePriorityQueue()
    two: StablePriorityQueue[str] = StablePriorityQueue()

    assert [await one.put(0, "a"), await one.put(9, "b"), await two.put(0, "c")] == [0, 1, 0]
    assert await one.get() == (9, 1, "b")
    assert await one.get() == (0, 0, "a")
    assert await one.put(0, "d") == 2, "a sequence is never given twice"


@in_a_loop
async def test_boundary_3_join_ends_when_task_done_stands_in_finally() -> None:
    queue: StablePriorityQueue[int] = StablePriorityQueue()
    failed = []

    async def consumer() -> None:
        while True:
            _, _, number = await queue.get()
            try:
                if number % 2:
                    raise ValueError(number)
            except ValueError:
                failed.append(number)
            finally:
                queue.task_done()

    for number in range(6):
        await queue.put(number % 3, number)
    consumers = [asyncio.create_task(consumer()) for _ in range(2)]
    await finished(queue.join())
    for task in consumers:
        task.cancel()
    await asyncio.gather(*consumers, return_exceptions=True)

    assert sorted(failed) == [1, 3, 5]


@in_a_loop
async def test_boundary_3_join_waits_for_work_that_was_got_and_not_done() -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue()
    await queue.put(0, "a")
    await queue.get()

    joined = asyncio.create_task(queue.join())
    await settle()
    assert not joined.done()
    queue.task_done()
    await finished(joined)

    with pytest.raises(ValueError, match="called too many times"):
        queue.task_done()


@in_a_loop
async def test_boundary_3_cancelled_get_loses_nothing() -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue()
    waiting = asyncio.create_task(queue.get())
    await settle()

    # The item has woken the getter, which is cancelled before it runs.
    queue.put_nowait(0, "a")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert queue.get_nowait() == (0, 0, "a")


@in_a_loop
async def test_boundary_3_cancelled_get_wakes_the_next_one() -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await settle()

    queue.put_nowait(0, "a")
    first.cancel()

    assert await finished(second) == (0, 0, "a")


@in_a_loop
async def test_boundary_3_cancelled_put_adds_nothing_and_wakes_the_next_one() -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue(maxsize=1)
    queue.put_nowait(0, "a")
    gives_up = asyncio.create_task(queue.put(9, "b"))
    goes_on = asyncio.create_task(queue.put(5, "c"))
    await settle()

    assert queue.get_nowait() == (0, 0, "a")
    gives_up.cancel()
    await finished(goes_on)

    assert drain(queue) == [(5, 2, "c")]
    queue.task_done()
    queue.task_done()
    await finished(queue.join())


@in_a_loop
async def test_boundary_4_maxsize_bounds_the_whole_queue_and_put_waits() -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue(maxsize=2)
    await queue.put(0, "a")
    await queue.put(5, "b")

    waiting = asyncio.create_task(queue.put(9, "c"))
    await settle()
    assert queue.full()
    assert not waiting.done(), "another priority makes no room"
    with pytest.raises(asyncio.QueueFull):
        queue.put_nowait(9, "d")

    assert await queue.get() == (5, 1, "b")
    assert await finished(waiting) == 2
    assert drain(queue) == [(9, 2, "c"), (0, 0, "a")]


@in_a_loop
async def test_boundary_4_put_that_had_to_wait_keeps_the_place_of_its_call() -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue(maxsize=1)
    queue.put_nowait(0, "a")
    waited = asyncio.create_task(queue.put(0, "b"))
    await settle()

    queue.get_nowait()
    queue.put_nowait(0, "c")
    assert queue.get_nowait() == (0, 2, "c")
    await finished(waited)

    assert drain(queue) == [(0, 1, "b")]


# -- the rest --------------------------------------------------------------------------------------


class Uncomparable:
    def __lt__(self, other: Any) -> bool:
        raise AssertionError("payloads are never compared")

    __gt__ = __eq__ = __lt__
    __hash__ = object.__hash__


@in_a_loop
async def test_payloads_are_never_compared() -> None:
    queue: StablePriorityQueue[Any] = StablePriorityQueue()
    payloads: list[Any] = [{"id": 1}, Uncomparable(), {"id": 2}, Uncomparable(), None]
    for payload in payloads:
        await queue.put(5, payload)

    assert all(a[2] is b for a, b in zip(drain(queue), payloads, strict=True))


@given(st.lists(st.integers(-9, 9), max_size=30))
@settings(max_examples=50, deadline=None)
def test_order_is_that_of_a_stable_sort(priorities: list[int]) -> None:
    queue: StablePriorityQueue[int] = StablePriorityQueue()
    for number, priority in enumerate(priorities):
        queue.put_nowait(priority, number)

    got = drain(queue)

    expected = sorted(range(len(priorities)), key=lambda n: -priorities[n])
    assert [payload for _, _, payload in got] == expected
    assert [(priority, sequence) for priority, sequence, _ in got] == [
        (priorities[n], n) for n in expected
    ]


@pytest.mark.parametrize("priority", [10, -10, True, 1.0, "5", None])
@in_a_loop
async def test_priority_is_checked_as_everywhere(priority: Any) -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue()

    with pytest.raises(PriorityError, match=r"^StablePriorityQueue\.put: "):
        await queue.put(priority, "a")
    with pytest.raises(PriorityError):
        queue.put_nowait(priority, "a")

    assert queue.empty()
    assert await queue.put(0, "b") == 0


@pytest.mark.parametrize("maxsize", [-1, True, 1.5, "2", None])
def test_maxsize_is_an_int_from_zero(maxsize: Any) -> None:
    with pytest.raises(ConfigError, match=r"StablePriorityQueue\(maxsize\): an int from 0"):
        StablePriorityQueue(maxsize)


@in_a_loop
async def test_get_waits_for_the_next_put() -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue()
    waiting = asyncio.create_task(queue.get())
    await settle()
    assert not waiting.done()

    await queue.put(3, "a")

    assert await finished(waiting) == (3, 0, "a")
    assert queue.empty()
    with pytest.raises(asyncio.QueueEmpty):
        queue.get_nowait()


@in_a_loop
async def test_sizes_tell_what_waits() -> None:
    queue: StablePriorityQueue[str] = StablePriorityQueue(maxsize=2)
    assert (queue.qsize(), queue.empty(), queue.full(), queue.maxsize) == (0, True, False, 2)

    await queue.put(0, "a")
    await queue.put(0, "b")

    assert (queue.qsize(), queue.empty(), queue.full()) == (2, False, True)
    assert repr(queue) == "<StablePriorityQueue size=2 maxsize=2>"


@in_a_loop
async def test_many_producers_and_consumers_lose_nothing() -> None:
    queue: StablePriorityQueue[tuple[int, int]] = StablePriorityQueue(maxsize=3)
    got: list[tuple[int, int]] = []

    async def produce(name: int) -> None:
        for number in range(20):
            await queue.put(name % 3, (name, number))

    async def consume() -> None:
        while True:
            _, _, payload = await queue.get()
            try:
                await asyncio.sleep(0)
                got.append(payload)
            finally:
                queue.task_done()

    consumers = [asyncio.create_task(consume()) for _ in range(3)]
    await asyncio.gather(*(produce(name) for name in range(5)))
    await finished(queue.join())
    for task in consumers:
        task.cancel()
    await asyncio.gather(*consumers, return_exceptions=True)

    assert sorted(got) == [(name, number) for name in range(5) for number in range(20)]
