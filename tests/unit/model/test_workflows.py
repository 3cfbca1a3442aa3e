"""Chains, groups and chords from their calls to their last result, on every transport."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from taskmq import App, Priority, QueueConfig, State
from taskmq.clock import FakeClock
from taskmq.errors import ConfigError, PriorityError, UpstreamFailed
from taskmq.message import Message
from taskmq.workflow import chain, chord, group, signature
from tests.unit.model.conftest import AppMaker
from tests.unit.model.runner import Runner


class Tasks:
    """The tasks of these tests, and what was told to the callbacks."""

    def __init__(self, app: App) -> None:
        self.told: list[Any] = []

        @app.task(name="add")
        def add(a: int, b: int) -> int:
            return a + b

        @app.task(name="total", priority=Priority.LOW)
        def total(values: list[int]) -> int:
            return sum(values)

        @app.task(name="fail")
        def fail(*args: object) -> None:
            raise ValueError("boom")

        @app.task(name="tell")
        def tell(*args: object) -> None:
            self.told.append(args)

        self.app = app
        self.add, self.total, self.fail, self.tell = add, total, fail, tell


@pytest.fixture(params=["memory", "sqlite"])
def app(make_app: AppMaker, tmp_path: Path, request: pytest.FixtureRequest) -> App:
    """Each transport applies what follows a step in its own way, to the same end."""
    queues = {"fast": QueueConfig(priority=4)}
    if request.param == "memory":
        return make_app(queues=queues)
    return make_app(queues=queues, broker_url=f"sqlite:///{tmp_path}/jobs.db")


@pytest.fixture
def tasks(app: App) -> Tasks:
    return Tasks(app)


@pytest.fixture
def runner(app: App) -> Runner:
    return Runner(app, "default", "fast", "other")


def first(app: App, call: Any, **options: Any) -> list[Message]:
    """The messages a workflow begins with."""
    sent: list[Message] = []
    app.hooks.before_submit.connect(sent.append)
    call.apply_async(**options)
    app.hooks.before_submit.disconnect(sent.append)
    return sent


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
        from datetime import datetime, timezone

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
