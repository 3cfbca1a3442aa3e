"""What runs with a result, or when there is none."""

from __future__ import annotations

from taskmq.workflow import chain, chord, group
from tests.unit.model.runner import Runner
from tests.unit.model.workflows.conftest import Tasks


class TestLinks:
    def test_a_link_runs_with_the_result(self, tasks: Tasks, runner: Runner) -> None:
        tasks.add.apply_async((1, 2), link=[tasks.tell.s("a"), tasks.tell.si("b")])
        runner.run()

        assert sorted(tasks.told, key=str) == [("b",), (3, "a")]

    def test_a_link_error_gets_the_id_of_the_failed_task(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        result = tasks.fail.apply_async(link_error=tasks.tell.s(), link=tasks.add.s(1))
        runner.run()

        assert tasks.told == [(result.id,)]

    def test_the_link_of_a_chain_belongs_to_its_end(self, tasks: Tasks, runner: Runner) -> None:
        chain(tasks.add.s(1, 2), tasks.add.s(10)).apply_async(link=tasks.tell.s())
        runner.run()

        assert tasks.told == [(13,)]

    def test_the_link_error_of_a_chain_is_told_once_of_whichever_step_fails(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        early = chain(tasks.fail.s(), tasks.add.s(1)).apply_async(link_error=tasks.tell.s())
        late = chain(tasks.add.s(1, 1), tasks.fail.s()).apply_async(link_error=tasks.tell.s())
        runner.run()

        assert sorted(tasks.told) == sorted([(early.parent.id,), (late.id,)])

    def test_the_link_error_of_a_chord_is_told_once_when_members_fail(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        chord([tasks.fail.s(), tasks.fail.s()], tasks.total.s()).apply_async(
            link_error=tasks.tell.s()
        )
        runner.run()

        assert len(tasks.told) == 1

    def test_a_link_may_be_a_workflow(self, tasks: Tasks, runner: Runner) -> None:
        tasks.add.apply_async((1, 2), link=chain(tasks.add.s(10), tasks.tell.s()))
        runner.run()

        assert tasks.told == [(13,)]

    def test_one_linked_call_runs_for_each_task_it_is_linked_to(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        callback = tasks.tell.s()
        group(tasks.add.s(1, 1), tasks.add.s(2, 2)).apply_async(link=callback)
        ran = runner.run()

        told = [d.message for d in ran if d.message.task == "tell"]
        assert sorted(tasks.told) == [(2,), (4,)]
        assert len({m.task_id for m in told}) == 2

    def test_own_links_and_those_around_it_add_up(self, tasks: Tasks, runner: Runner) -> None:
        step = tasks.add.s(10).set(link=tasks.tell.s("own"))
        chain(tasks.add.s(1, 2), step).apply_async(link=tasks.tell.s("around"))
        runner.run()

        assert sorted(tasks.told) == [(13, "around"), (13, "own")]
