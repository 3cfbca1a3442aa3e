"""Calls beside each other, and what gathers their results."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from taskmq import App
from taskmq.errors import ConfigError, UpstreamFailed
from taskmq.message import Message
from taskmq.workflow import chain, chord, group
from tests.unit.model.runner import Runner
from tests.unit.model.workflows.conftest import Tasks


class TestGroup:
    def test_results_come_in_the_order_of_the_calls(self, tasks: Tasks, runner: Runner) -> None:
        results = group(tasks.add.s(n, n).set(priority=n) for n in range(4)).apply_async()
        ran = runner.run()

        assert results.get(timeout=0) == [0, 2, 4, 6]
        assert [json.loads(d.message.body)[0][0] for d in ran] == [3, 2, 1, 0]
        assert results.ready()
        assert results.completed == len(results) == 4
        assert results[1].get() == 2

    def test_a_group_is_submitted_at_once(
        self, app: App, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = []
        submit = app.transport.submit

        def counted(messages: Sequence[Message]) -> None:
            calls.append(len(messages))
            submit(messages)

        monkeypatch.setattr(app.transport, "submit", counted)

        group(tasks.add.s(n, n) for n in range(7)).apply_async()

        assert calls == [7]

    def test_nothing_of_a_group_is_stored_when_one_call_is_wrong(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        with pytest.raises(TypeError):
            group(tasks.add.s(1, 2), tasks.add.s(1)).apply_async()

        assert runner.run() == []

    def test_an_empty_group_has_empty_results(self) -> None:
        results = group([]).apply_async()

        assert results.get() == []
        assert results.ready()

    def test_one_failure_is_raised_or_returned_in_its_place(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        results = group(tasks.add.s(1, 1), tasks.fail.s(), tasks.add.s(2, 2)).apply_async()
        runner.run()

        with pytest.raises(ValueError, match="boom"):
            results.get(timeout=0)
        one, two, three = results.get(timeout=0, propagate=False)
        assert (one, three) == (2, 4)
        assert isinstance(two, ValueError)

    def test_a_task_id_is_refused_for_several_tasks(self, tasks: Tasks) -> None:
        with pytest.raises(ConfigError, match="task_id"):
            group(tasks.add.s(1, 1), tasks.add.s(2, 2)).apply_async(task_id="x")


class TestChord:
    def test_the_body_gets_the_results_in_order(self, tasks: Tasks, runner: Runner) -> None:
        result = chord(tasks.add.s(n, n).set(priority=n) for n in range(5))(tasks.total.s())
        runner.run()

        assert result.get(timeout=0) == 20
        assert result.parent.get(timeout=0) == [0, 2, 4, 6, 8]

    def test_without_members_the_body_runs_with_an_empty_list(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        result = chord([])(tasks.total.s())
        ran = runner.run()

        assert result.get(timeout=0) == 0
        assert [d.message.task for d in ran] == ["total"]

    def test_without_members_a_chain_as_body_runs_too(self, tasks: Tasks, runner: Runner) -> None:
        result = chord([], chain(tasks.total.s(), tasks.add.s(5))).apply_async()
        runner.run()

        assert result.get(timeout=0) == 5

    def test_a_group_in_a_chain_becomes_a_chord(self, tasks: Tasks, runner: Runner) -> None:
        members = group(tasks.add.s(1), tasks.add.s(2))
        result = chain(
            tasks.add.s(10, 10), members, tasks.total.s(), tasks.add.s(1000)
        ).apply_async()
        runner.run()

        assert result.get(timeout=0) == 21 + 22 + 1000

    def test_a_group_at_the_end_of_a_chain_gives_all_results(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        results = chain(tasks.add.s(1, 1), group(tasks.add.s(1), tasks.add.s(2))).apply_async()
        runner.run()

        assert results.get(timeout=0) == [3, 4]

    def test_members_may_be_chains_and_groups(self, tasks: Tasks, runner: Runner) -> None:
        header = [
            chain(tasks.add.s(1, 1), tasks.add.s(10)),
            group(tasks.add.s(2, 2), tasks.add.s(3, 3)),
            chord([tasks.add.s(4, 4), tasks.add.s(5, 5)], tasks.total.s()),
        ]
        result = chord(header, tasks.total.s()).apply_async()
        runner.run()

        assert result.get(timeout=0) == 12 + 4 + 6 + 18

    def test_a_chord_after_a_chord_in_a_chain(self, tasks: Tasks, runner: Runner) -> None:
        result = chain(
            chord([tasks.add.s(1, 1), tasks.add.s(2, 2)], tasks.total.s()),
            group(tasks.add.s(1), tasks.add.s(2)),
            tasks.total.s(),
        ).apply_async()
        runner.run()

        assert result.get(timeout=0) == 7 + 8

    def test_a_chord_whose_body_is_a_group(self, tasks: Tasks, runner: Runner) -> None:
        results = chord(
            [tasks.add.s(1, 1), tasks.add.s(2, 2)], group(tasks.total.s(), tasks.total.s())
        ).apply_async()
        runner.run()

        assert results.get(timeout=0) == [6, 6]

    def test_a_member_may_be_a_chord_with_several_ends(self, tasks: Tasks, runner: Runner) -> None:
        inner = chord([tasks.add.s(1, 1)], group(tasks.total.s(), tasks.total.s()))
        result = chord([inner, tasks.add.s(5, 5)], tasks.total.s()).apply_async()
        runner.run()

        assert result.get(timeout=0) == 2 + 2 + 10

    def test_a_member_that_fails_ends_the_body(self, tasks: Tasks, runner: Runner) -> None:
        result = chord([tasks.add.s(1, 1), tasks.fail.s(), tasks.fail.s()])(tasks.total.s())
        runner.run()

        with pytest.raises(UpstreamFailed):
            result.get(timeout=0)

    def test_a_member_that_fails_in_its_chain_ends_the_body(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        member = chain(tasks.fail.s(), tasks.add.s(1))
        result = chord([tasks.add.s(1, 1), member])(tasks.total.s())
        runner.run()

        with pytest.raises(UpstreamFailed):
            result.get(timeout=0)
