"""What a running task can do: publish, report, stop, try again."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from taskmq import App, Config, Context, QueueConfig, RetryPolicy, State, current_context
from taskmq.clock import FakeClock
from taskmq.context import running
from taskmq.errors import (
    ConfigError,
    MaxRetriesExceeded,
    PriorityError,
    Retry,
    TaskCancelled,
    TransportUnavailable,
)
from taskmq.message import Message
from taskmq.workflow import chain, group
from tests.unit.model.conftest import AppMaker
from tests.unit.model.runner import Control, Runner


@pytest.fixture
def runner(app: App) -> Runner:
    return Runner(app)


def started(app: App, runner: Runner, task: Any, *args: Any, **options: Any) -> Context:
    """The context of a run of this task that has just begun."""
    task.apply_async(args, **options)
    delivery = runner.take()
    assert delivery is not None
    return runner.context(delivery)


class TestPublish:
    def test_the_child_inherits_priority_and_root(self, app: App, runner: Runner) -> None:
        child = app.task(name="child", priority=-4)(lambda: None)

        @app.task(bind=True, name="parent")
        def parent(ctx: Context) -> list[str]:
            first = ctx.publish(child)
            second = ctx.publish("child", priority=9)
            return [first.id, second.id]

        @app.task(bind=True, name="grandparent")
        def grandparent(ctx: Context) -> None:
            ctx.publish(parent)

        root = grandparent.apply_async(priority=3)
        messages = {m.task: m for m in (d.message for d in runner.run())}

        assert messages["parent"].priority == 3
        assert messages["parent"].parent_id == root.id
        assert messages["child"].root_id == root.id
        assert messages["child"].parent_id == messages["parent"].task_id

    def test_a_given_priority_wins_over_the_inherited(self, app: App, runner: Runner) -> None:
        child = app.task(name="child", priority=-4)(lambda: None)
        context = started(app, runner, child, priority=2)

        context.publish(child)
        context.publish(child, priority=8)
        context.publish(child, priority=None)

        assert [d.message.priority for d in runner.run()] == [8, 2, 2]

    def test_a_plain_delay_inside_a_run_inherits_nothing(self, app: App, runner: Runner) -> None:
        child = app.task(name="child", priority=-4)(lambda: None)

        @app.task(name="parent")
        def parent() -> None:
            child.delay()

        parent.apply_async(priority=7)

        assert [d.message.priority for d in runner.run()] == [7, -4]

    def test_children_are_remembered_in_order(self, app: App, runner: Runner) -> None:
        child = app.task(name="child")(lambda *args: None)
        context = started(app, runner, child)

        one = context.publish(child)
        two = context.publish(child, task_id="mine")
        both = context.publish(group(child.s(), child.s()))

        assert context.children == (one.id, two.id, *(r.id for r in both))

    def test_a_workflow_inherits_for_each_of_its_steps(self, app: App, runner: Runner) -> None:
        child = app.task(name="child", priority=-4)(lambda *args: None)
        context = started(app, runner, child, priority=6)

        context.publish(chain(child.s(), child.s().set(priority=1), child.s()))
        ran = [d.message for d in runner.run()]

        assert [m.priority for m in ran] == [6, 1, 6]
        assert ran[0].parent_id == context.task_id
        assert {m.root_id for m in ran} == {context.task_id}

    def test_arguments_beside_a_signature_are_refused(self, app: App, runner: Runner) -> None:
        child = app.task(name="child")(lambda *args: None)
        context = started(app, runner, child)

        with pytest.raises(ConfigError, match="arguments already"):
            context.publish(child.s(1), (2,))  # type: ignore[call-overload]


class TestCheckCancelled:
    def test_nothing_happens_while_nobody_revoked(self, app: App, runner: Runner) -> None:
        context = started(app, runner, app.task(name="work")(lambda: None))

        context.check_cancelled()

    def test_the_pools_reason_is_told(self, app: App, runner: Runner) -> None:
        app.task(name="work")(lambda: None).delay()
        control = Control()
        context = runner.context(runner.take(), control)  # type: ignore[arg-type]
        control.reason = "the worker is stopping"

        with pytest.raises(TaskCancelled, match="the worker is stopping"):
            context.check_cancelled()

    def test_a_revocation_in_the_store_is_found(
        self, app: App, runner: Runner, clock: FakeClock
    ) -> None:
        context = started(app, runner, app.task(name="work")(lambda: None))
        app.result(context.task_id).revoke()

        with pytest.raises(TaskCancelled, match="revoked"):
            context.check_cancelled()

    def test_the_store_is_asked_ten_times_a_second_at_most(
        self, app: App, runner: Runner, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        context = started(app, runner, app.task(name="work")(lambda: None))
        looks = []

        def look(task_id: str) -> bool:
            looks.append(task_id)
            return False

        monkeypatch.setattr(app.transport.operators, "is_revoked", look)
        for _ in range(100):
            context.check_cancelled()
        assert len(looks) == 1
        clock.advance(0.1)
        context.check_cancelled()
        assert len(looks) == 2

    def test_a_store_that_is_busy_stops_nobody_and_is_warned_of_once(
        self,
        app: App,
        runner: Runner,
        clock: FakeClock,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        context = started(app, runner, app.task(name="work")(lambda: None))

        def busy(task_id: str) -> bool:
            raise TransportUnavailable("locked")

        monkeypatch.setattr(app.transport.operators, "is_revoked", busy)
        caplog.set_level(logging.WARNING, "taskmq.context")
        for _ in range(3):
            context.check_cancelled()
            clock.advance(1)

        assert [record.getMessage() for record in caplog.records] == [
            f"could not look whether task {context.task_id} is revoked: locked"
        ]


class TestRetry:
    def retried(self, context: Context, **options: Any) -> Retry:
        with pytest.raises(Retry) as retry:
            context.retry(**options)
        return retry.value

    def test_a_retry_keeps_the_priority(self, app: App, runner: Runner) -> None:
        task = app.task(name="work")(lambda: None)

        assert self.retried(started(app, runner, task, priority=5)).priority == 5

    @pytest.mark.parametrize("level", ["config", "task"])
    def test_a_retry_can_be_one_level_lower(self, make_app: AppMaker, level: str) -> None:
        app = make_app(Config(retry_priority="lower" if level == "config" else "keep"))
        task = app.task(name="work", retry_priority="lower" if level == "task" else None)(
            lambda: None
        )
        runner = Runner(app)

        assert self.retried(started(app, runner, task, priority=5)).priority == 4
        assert self.retried(started(app, runner, task, priority=-9)).priority == -9

    def test_the_task_keeps_where_the_config_lowers(self, make_app: AppMaker) -> None:
        app = make_app(Config(retry_priority="lower"))
        task = app.task(name="work", retry_priority="keep")(lambda: None)

        assert self.retried(started(app, Runner(app), task, priority=5)).priority == 5

    def test_a_given_priority_and_delay_win(self, app: App, runner: Runner) -> None:
        task = app.task(name="work", retry_priority="lower")(lambda: None)
        retry = self.retried(started(app, runner, task), priority=7, delay=12)

        assert (retry.priority, retry.delay) == (7, 12.0)

    def test_the_delay_is_the_policys(self, app: App, runner: Runner) -> None:
        policy = RetryPolicy(delay=10, jitter=0)
        task = app.task(name="work", retry=policy)(lambda: None)

        assert self.retried(started(app, runner, task)).delay == 10
        assert self.retried(started(app, runner, task, retries=2)).delay == 40

    def test_the_cause_is_kept(self, app: App, runner: Runner) -> None:
        context = started(app, runner, app.task(name="work")(lambda: None))
        cause = KeyError("gone")

        assert self.retried(context, exc=cause).cause is cause
        try:
            raise cause
        except KeyError:
            assert self.retried(context).cause is cause

    def test_when_none_is_left_the_cause_is_raised(self, app: App, runner: Runner) -> None:
        task = app.task(name="work", retry=RetryPolicy(max_retries=2))(lambda: None)
        context = started(app, runner, task, retries=2)

        with pytest.raises(KeyError, match="gone"):
            context.retry(exc=KeyError("gone"))

    def test_when_none_is_left_and_there_is_no_cause_it_says_so(
        self, app: App, runner: Runner
    ) -> None:
        task = app.task(name="work", retry=RetryPolicy(max_retries=2))(lambda: None)
        context = started(app, runner, task, retries=2)

        with pytest.raises(MaxRetriesExceeded, match=r"work .* 2 times"):
            context.retry()

    def test_the_bound_can_be_given(self, app: App, runner: Runner) -> None:
        task = app.task(name="work", retry=RetryPolicy(max_retries=2))(lambda: None)

        self.retried(started(app, runner, task, retries=5), max_retries=6)
        with pytest.raises(MaxRetriesExceeded):
            started(app, runner, task).retry(max_retries=0)

    def test_a_policy_without_a_bound_never_ends(self, app: App, runner: Runner) -> None:
        task = app.task(name="work", retry=RetryPolicy(max_retries=None))(lambda: None)

        self.retried(started(app, runner, task, retries=10_000))

    @pytest.mark.parametrize(
        ("option", "value", "error"),
        [
            ("delay", -1, ConfigError),
            ("delay", float("nan"), ConfigError),
            ("max_retries", -1, ConfigError),
            ("priority", 10, PriorityError),
        ],
    )
    def test_bad_options_are_refused(
        self, app: App, runner: Runner, option: str, value: Any, error: type[Exception]
    ) -> None:
        context = started(app, runner, app.task(name="work")(lambda: None))

        with pytest.raises(error, match=f"task work: retry\\({option}\\)"):
            context.retry(**{option: value})

    def test_a_retried_message_runs_again_with_its_count(
        self, app: App, runner: Runner, clock: FakeClock
    ) -> None:
        seen = []

        @app.task(bind=True, name="work")
        def work(ctx: Context) -> str:
            seen.append((ctx.retries, ctx.deliveries, ctx.task_id))
            if ctx.retries < 2:
                ctx.retry(delay=5)
            return "done"

        result = work.delay()
        runner.run()
        assert result.state is State.RETRYING
        clock.advance(5)
        runner.run()
        clock.advance(5)
        runner.run()

        assert result.get(timeout=0) == "done"
        assert seen == [(n, 1, result.id) for n in range(3)]


def test_the_current_context_is_that_of_the_run(app: App, runner: Runner) -> None:
    seen: list[Context | None] = []
    app.task(name="work")(lambda: seen.append(current_context())).delay(priority=4)
    runner.run()

    assert current_context() is None
    context = seen[0]
    assert context is not None
    assert (context.task.name, context.priority, context.worker) == ("work", 4, "w")


def test_progress_goes_to_the_pool(app: App, runner: Runner) -> None:
    app.task(name="work")(lambda: None).delay()
    control = Control()
    context = runner.context(runner.take(), control)  # type: ignore[arg-type]

    context.progress({"done": 3}, "reading")

    assert control.reports == [({"done": 3}, "reading")]


def test_a_bound_task_called_inside_a_run_is_part_of_it(app: App, runner: Runner) -> None:
    @app.task(bind=True, name="helper")
    def helper(ctx: Context) -> tuple[str, int]:
        ctx.progress("helping")
        return ctx.task_id, ctx.priority

    app.task(name="work")(lambda: None).delay(priority=4)
    control = Control()
    context = runner.context(runner.take(), control)  # type: ignore[arg-type]
    with running(context):
        assert helper() == (context.task_id, 4)

    assert control.reports == [("helping", "")]


def test_the_priority_of_a_direct_call_is_what_a_submit_would_have(make_app: AppMaker) -> None:
    app = make_app(Config(queues={"q": QueueConfig(priority=-6)}))
    sent: list[Message] = []
    app.hooks.before_submit.connect(sent.append)

    @app.task(bind=True, queue="q")
    def work(ctx: Context) -> None:
        ctx.publish("child")

    work()

    assert sent[0].priority == -6
