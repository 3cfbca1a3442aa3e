"""What a workflow's options mean to its steps, and what its calls are as values."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from taskmq import App, Priority, State
from taskmq.clock import FakeClock
from taskmq.errors import ConfigError, PriorityError
from taskmq.workflow import chain, chord, group, signature
from tests.unit.model.conftest import AppMaker
from tests.unit.model.runner import Runner
from tests.unit.model.workflows.conftest import Tasks


class TestOptions:
    def test_a_priority_holds_for_each_step_and_a_steps_own_wins(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        chain(
            tasks.add.s(1, 1),
            tasks.add.s(1).set(priority=-3),
            group(tasks.add.s(1), tasks.add.s(2).set(priority=0)),
            tasks.total.s(),
        ).apply_async(priority=6)
        ran = runner.run()

        assert [(d.message.task, d.message.priority) for d in ran] == [
            ("add", 6),
            ("add", -3),
            ("add", 6),
            ("add", 0),
            ("total", 6),
        ]

    def test_without_one_each_step_has_its_own_priority(self, tasks: Tasks, runner: Runner) -> None:
        chain(
            tasks.add.s(1, 1),
            tasks.add.s(1).set(queue="fast"),
            group(tasks.add.s(1)),
            tasks.total.s(),
        ).apply_async()
        ran = runner.run()

        assert [d.message.priority for d in ran] == [0, 4, 0, Priority.LOW]

    def test_an_inner_workflow_wins_over_the_outer(self, tasks: Tasks, runner: Runner) -> None:
        inner = chain(tasks.add.s(1), tasks.add.s(1)).set(priority=2, queue="other")
        chain(tasks.add.s(1, 1), inner, tasks.add.s(1)).apply_async(priority=7)
        ran = runner.run()

        assert [(d.message.priority, d.message.queue) for d in ran] == [
            (7, "default"),
            (2, "other"),
            (2, "other"),
            (7, "default"),
        ]

    def test_a_wrong_priority_of_a_late_step_is_refused_at_the_call(
        self, tasks: Tasks, runner: Runner
    ) -> None:
        with pytest.raises(PriorityError, match="task add"):
            chain(tasks.add.s(1, 1), tasks.add.s(1).set(priority=10)).apply_async()
        assert runner.run() == []

    def test_arguments_of_a_late_step_are_checked_at_the_call(self, tasks: Tasks) -> None:
        with pytest.raises(TypeError, match="task add"):
            chain(tasks.add.s(1, 1), tasks.add.s(1, 2)).apply_async()
        with pytest.raises(TypeError, match="task add"):
            chain(tasks.add.s(1, 1), tasks.add.si(1)).apply_async()

    def test_countdown_concerns_the_beginning(
        self, app: App, tasks: Tasks, runner: Runner, clock: FakeClock
    ) -> None:
        result = chain(tasks.add.s(1, 1), tasks.add.s(1)).apply_async(countdown=60)

        assert runner.run() == []
        clock.advance(60)
        assert len(runner.run()) == 2
        assert result.get(timeout=0) == 3

    def test_a_late_steps_own_countdown_counts_from_its_submit(
        self, tasks: Tasks, runner: Runner, clock: FakeClock
    ) -> None:
        result = chain(tasks.add.s(1, 1), tasks.add.s(1).set(countdown=30)).apply_async(
            countdown=100
        )
        clock.advance(100)
        assert len(runner.run()) == 1
        assert result.state is State.SCHEDULED
        clock.advance(30)
        runner.run()

        assert result.get(timeout=0) == 3

    def test_expires_is_one_moment_for_the_whole_and_a_steps_own_counts_from_its_submit(
        self, app: App, tasks: Tasks, runner: Runner, clock: FakeClock
    ) -> None:
        began = clock.now()
        chain(tasks.add.s(1, 1), tasks.add.s(1), tasks.add.s(1).set(expires=5)).apply_async(
            expires=100
        )
        clock.advance(50)
        ran = runner.run()

        assert [d.message.expires_at for d in ran] == [began + 100, began + 100, began + 55]

    def test_an_expired_workflow_ends_all_its_steps(
        self, tasks: Tasks, runner: Runner, clock: FakeClock
    ) -> None:
        result = chain(tasks.add.s(1, 1), tasks.add.s(1)).apply_async(expires=10)
        clock.advance(11)

        assert runner.run() == []
        assert result.parent.state is State.EXPIRED
        assert result.state is State.FAILED

    def test_the_task_id_is_the_ends(self, tasks: Tasks, runner: Runner) -> None:
        result = chain(tasks.add.s(1, 1), tasks.add.s(1)).apply_async(task_id="mine")
        ran = runner.run()

        assert result.id == "mine"
        assert ran[1].message.task_id == "mine"
        assert ran[0].message.task_id != "mine"

    def test_what_a_tasks_declaration_decides_holds_for_late_steps(
        self, app: App, runner: Runner
    ) -> None:
        @app.task(
            name="declared",
            queue="other",
            ack="late",
            max_deliveries=9,
            time_limit=7,
            soft_time_limit=6,
            rate_limit="5/s",
            concurrency_key="n:{n}",
            concurrency_limit=3,
            ignore_result=True,
            result_expires=11,
        )
        def declared(before: object, n: int) -> None: ...

        begin = app.task(name="begin")(lambda: None)
        alone = app.message(declared, (None, 5))
        result = chain(begin.s(), declared.s(5)).apply_async(headers={"tenant": "a"})
        late = runner.run()[1].message

        for field in (
            "queue", "ack", "max_deliveries", "time_limit", "soft_time_limit", "rate", "concurrency",
            "store_result", "result_expires",
        ):  # fmt: skip
            assert getattr(late, field) == getattr(alone, field), field
        assert late.headers == {"tenant": "a"}
        assert result.parent.id == late.root_id == late.parent_id

    def test_a_key_that_needs_the_unknown_result_is_refused(self, app: App) -> None:
        @app.task(name="keyed", concurrency_key="n:{n}")
        def keyed(n: int) -> None: ...

        begin = app.task(name="begin")(lambda: 1)

        with pytest.raises(ConfigError, match="not known yet"):
            chain(begin.s(), keyed.s()).apply_async()
        chain(begin.s(), keyed.si(4)).apply_async()

    @pytest.mark.parametrize("option", ["message_id", "retries"])
    def test_what_belongs_to_one_message_is_refused(self, tasks: Tasks, option: str) -> None:
        value: Any = {"message_id": "x", "retries": 2}[option]
        with pytest.raises(ConfigError, match=option):
            chain(tasks.add.s(1, 1), tasks.add.s(1)).apply_async(**{option: value})
        with pytest.raises(ConfigError, match=option):
            chain(tasks.add.s(1, 1), tasks.add.s(1).set(**{option: value})).apply_async()

    def test_unknown_options_are_refused(self, tasks: Tasks) -> None:
        with pytest.raises(ConfigError, match="Did you mean 'priority'"):
            tasks.add.s(1, 1).set(priorty=3)  # type: ignore[call-arg]
        with pytest.raises(ConfigError, match="Did you mean 'priority'"):
            chain(tasks.add.s(1, 1)).apply_async(priorty=3)  # type: ignore[call-arg]

    def test_a_late_step_that_is_not_json_is_refused(self, make_app: AppMaker) -> None:
        app = make_app(accept_content=("json", "pickle"))
        odd = app.task(name="odd", serializer="pickle")(lambda value: None)

        with pytest.raises(ConfigError, match="JSON"):
            chain(odd.s(1), odd.s()).apply_async()

    def test_typed_values_reach_late_steps(self, app: App, runner: Runner) -> None:
        got = []
        moment = datetime(2030, 1, 2, tzinfo=timezone.utc)
        begin = app.task(name="begin")(lambda: moment)
        keep = app.task(name="keep")(lambda *args: got.append(args))
        chain(begin.s(), keep.s(moment)).apply_async()
        runner.run()

        assert got == [(moment, moment)]


class TestSignatures:
    def test_a_signature_is_a_value(self, tasks: Tasks) -> None:
        call = tasks.add.s(1, b=2)
        urgent = call.set(priority=3)

        assert call.options == {}
        assert urgent.options == {"priority": 3}
        assert repr(call) == "add(1, b=2)"
        assert repr(chain(call, urgent)) == "chain(add(1, b=2), add(1, b=2))"

    def test_a_call_alone_can_be_submitted(self, tasks: Tasks, runner: Runner) -> None:
        result = tasks.add.s(1, 2).set(priority=3).apply_async(priority=5, queue="other")
        message = runner.run()[0].message

        assert result.get(timeout=0) == 3
        assert (message.priority, message.queue) == (3, "other")

    def test_a_task_by_name_takes_the_app_around_it(self, tasks: Tasks, runner: Runner) -> None:
        result = chain(tasks.add.s(1, 1), signature("add", (5,), priority=2)).apply_async()
        ran = runner.run()

        assert result.get(timeout=0) == 7
        assert ran[1].message.priority == 2

    def test_a_task_by_name_alone_needs_an_app(self, app: App, tasks: Tasks) -> None:
        with pytest.raises(ConfigError, match="app=app"):
            signature("add", (1, 2)).apply_async()

        assert signature("add", (1, 2), app=app).apply_async().state is State.QUEUED

    def test_parts_of_different_apps_are_refused(self, tasks: Tasks, make_app: AppMaker) -> None:
        other = Tasks(make_app()).tell

        with pytest.raises(ConfigError, match="different apps"):
            chain(tasks.add.s(1, 1), other.s())

    @pytest.mark.parametrize("wrong", ["text", 5, len])
    def test_what_is_no_call_is_refused(self, tasks: Tasks, wrong: Any) -> None:
        with pytest.raises(ConfigError, match="calls like"):
            chain(tasks.add.s(1, 1), wrong)
        with pytest.raises(ConfigError, match="calls like"):
            group(wrong)
        with pytest.raises(ConfigError, match="calls like"):
            chord(wrong)

    def test_the_stored_form_is_celerys(self, tasks: Tasks) -> None:
        stored = chain(tasks.add.s(1), tasks.add.s(3)).wire()

        assert stored["subtask_type"] == "chain"
        step = stored["kwargs"]["tasks"][1]
        assert set(step) == {"task", "args", "kwargs", "options", "subtask_type", "immutable"}
        assert (step["task"], step["args"], step["immutable"]) == ("add", [3], False)
        assert "task_id" not in step["options"]
