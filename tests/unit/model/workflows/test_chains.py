"""One step after the other."""

from __future__ import annotations

import pytest

from taskmq import State
from taskmq.errors import ConfigError, UpstreamFailed
from taskmq.workflow import chain
from tests.unit.model.runner import Runner
from tests.unit.model.workflows.conftest import Tasks


class TestChain:
    def test_each_step_gets_the_result_of_the_one_before(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        result = chain(tasks.add.s(1, 2), tasks.add.s(10), tasks.add.s(100)).apply_async()

        ran = runner.run()

        assert result.get(timeout=0) == 113
        assert [d.message.task for d in ran] == ["add"] * 3
        assert result.parent.get(timeout=0) == 13
        assert result.parent.parent.get(timeout=0) == 3
        assert result.parent.parent.parent is None

    def test_the_bar_makes_a_chain(self, tasks: Tasks, runner: Runner) -> None:
        result = (tasks.add.s(1, 2) | tasks.add.s(10) | tasks.add.s(100)).apply_async()
        runner.run()

        assert result.get(timeout=0) == 113

    def test_an_immutable_step_ignores_the_result_before(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        result = chain(tasks.add.s(1, 2), tasks.add.si(5, 6)).apply_async()
        runner.run()

        assert result.get(timeout=0) == 11

    def test_chains_nest(self, tasks: Tasks, runner: Runner) -> None:
        inner = chain(tasks.add.s(10), tasks.add.s(20))
        result = chain(tasks.add.s(1, 2), inner, tasks.add.s(100)).apply_async()
        runner.run()

        assert result.get(timeout=0) == 133

    def test_a_later_step_is_unknown_until_its_turn(self, tasks: Tasks) -> None:
        result = chain(tasks.add.s(1, 2), tasks.add.s(10)).apply_async()

        assert result.state is State.UNKNOWN
        assert result.parent.state is State.QUEUED
        assert not result.over()

    def test_a_failure_ends_every_later_step_and_says_so(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        result = chain(tasks.add.s(1, 2), tasks.fail.s(), tasks.add.s(10)).apply_async()
        runner.run()

        with pytest.raises(ValueError, match="boom"):
            result.parent.get(timeout=0)
        with pytest.raises(UpstreamFailed, match="fail"):
            result.get(timeout=0)
        assert result.state is State.FAILED

    def test_an_empty_chain_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="at least one step"):
            chain()
