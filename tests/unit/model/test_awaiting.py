"""`await result`: as `get()`, many at a time and without a thread for each."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from taskmq import App
from taskmq.errors import ResultError, ResultUnavailable
from taskmq.workflow import group
from tests.unit.model.runner import Runner


class TestAwait:
    @pytest.fixture
    def runner(self, app: App) -> Runner:
        app.task(name="work")(lambda n=5: n)
        return Runner(app)

    def run_beside(self, runner: Runner, main: Any) -> Any:
        """Run the coroutine, and the tasks as soon as it awaits them."""

        async def both() -> Any:
            waiting = asyncio.ensure_future(main)
            await asyncio.sleep(0)
            await asyncio.to_thread(runner.run)
            return await waiting

        return asyncio.run(asyncio.wait_for(both(), 20))

    def test_await_gives_the_value(self, app: App, runner: Runner) -> None:
        async def main() -> Any:
            return await app.submit("work")

        assert self.run_beside(runner, main()) == 5

    def test_many_results_are_awaited_by_one_thread(self, app: App, runner: Runner) -> None:
        names: set[str] = set()

        async def main() -> list[int]:
            results = app.submit_many(("work", (n,)) for n in range(60))
            waiting = asyncio.gather(*results)
            await asyncio.sleep(0)
            names.update(t.name for t in threading.enumerate() if "taskmq" in t.name)
            return await waiting

        assert self.run_beside(runner, main()) == list(range(60))
        assert names == {"taskmq-results"}

    def test_the_same_result_can_be_awaited_twice(self, app: App, runner: Runner) -> None:
        async def main() -> list[Any]:
            result = app.submit("work")
            return list(await asyncio.gather(result, result))

        assert self.run_beside(runner, main()) == [5, 5]

    def test_a_failure_is_raised(self, app: App, runner: Runner) -> None:
        def fail() -> None:
            raise ValueError("boom")

        app.task(name="fail")(fail)

        async def main() -> Any:
            return await app.submit("fail")

        with pytest.raises(ValueError, match="boom"):
            self.run_beside(runner, main())

    def test_a_deadline_cancels_the_wait_and_only_that(self, app: App, runner: Runner) -> None:
        result = app.submit("work")

        async def main() -> None:
            await asyncio.wait_for(result, 0.01)

        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(main())
        runner.run()
        assert result.get(timeout=0) == 5

    def test_an_unavailable_store_is_passed_on(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def down(*args: Any) -> Any:
            raise ResultUnavailable("down")

        result = app.submit("work")
        monkeypatch.setattr(app.results, "wait", down)

        async def main() -> Any:
            return await result

        with pytest.raises(ResultUnavailable):
            asyncio.run(asyncio.wait_for(main(), 10))

    def test_a_forgotten_result_ends_the_wait(
        self, app: App, runner: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("taskmq.result._LOOK_EVERY", 0.01)
        result = app.submit("work")
        runner.run()
        result.forget()

        async def main() -> Any:
            return await result

        with pytest.raises(ResultError, match="neither"):
            asyncio.run(asyncio.wait_for(main(), 10))

    def test_a_group_is_awaited_whole(self, app: App, runner: Runner) -> None:
        work = app.registry["work"]

        async def main() -> list[int]:
            return await group(work.s(n) for n in range(4)).apply_async()

        assert self.run_beside(runner, main()) == [0, 1, 2, 3]
