"""A soft limit reaches a coroutine as what it is, and leaves the loop in order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from taskmq.errors import SoftTimeLimitExceeded
from taskmq.pools.interruptible import Interruptible, run_coroutine


async def interrupted(inside: Interruptible) -> Any:
    """Await `inside` in a task and interrupt it once it waits."""

    async def awaiting() -> Any:
        return await inside

    task = asyncio.ensure_future(awaiting())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    inside.interrupt(task, SoftTimeLimitExceeded("late"))
    return await task


def test_the_coroutine_can_catch_it_and_go_on() -> None:
    async def task() -> str:
        try:
            await asyncio.sleep(60)
        except SoftTimeLimitExceeded:
            await asyncio.sleep(0)
            return "cleaned up"
        return "not reached"

    assert asyncio.run(interrupted(Interruptible(task()))) == "cleaned up"


def test_uncaught_it_ends_the_coroutine() -> None:
    async def task() -> None:
        await asyncio.sleep(60)

    with pytest.raises(SoftTimeLimitExceeded, match="late"):
        asyncio.run(interrupted(Interruptible(task())))


def test_a_real_cancellation_passes_through_as_it_is() -> None:
    seen = []

    async def task() -> None:
        try:
            await asyncio.sleep(60)
        except BaseException as exc:
            seen.append(type(exc))
            raise

    async def main() -> None:
        inside = Interruptible(task())

        async def awaiting() -> Any:
            return await inside

        running = asyncio.ensure_future(awaiting())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert seen == [asyncio.CancelledError]


def test_a_timeout_around_the_wait_still_works_afterwards() -> None:
    async def task() -> str:
        try:
            await asyncio.wait_for(asyncio.sleep(60), 30)
        except SoftTimeLimitExceeded:
            pass
        try:
            await asyncio.wait_for(asyncio.sleep(60), 0.001)
        except (TimeoutError, asyncio.TimeoutError):
            return "timed out as asked"
        return "not reached"

    assert asyncio.run(interrupted(Interruptible(task()))) == "timed out as asked"


def test_exceptions_and_values_pass_through() -> None:
    async def value() -> int:
        await asyncio.sleep(0)
        return 5

    async def error() -> None:
        await asyncio.sleep(0)
        raise ValueError("boom")

    assert run_coroutine(value()) == 5
    with pytest.raises(ValueError, match="boom"):
        run_coroutine(error())


def test_what_a_coroutine_leaves_behind_is_cancelled() -> None:
    ended = []

    async def left_behind() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("left behind")

    async def task() -> str:
        task.kept = asyncio.ensure_future(left_behind())  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        return "done"

    assert run_coroutine(task()) == "done"
    assert ended == ["left behind"]
