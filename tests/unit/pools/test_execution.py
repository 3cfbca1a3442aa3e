"""One run: whatever a task does is an ending of that run, and of nothing else (rows 23, 31-33)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import taskmq.testing
from taskmq import Context, RetryPolicy, State, current_context
from taskmq.app import App
from taskmq.errors import Ignore, Reject, Retry, SoftTimeLimitExceeded, TaskCancelled
from taskmq.hooks import RunEvent
from taskmq.pools.base import Completion, Ending
from taskmq.pools.execution import execute
from tests.unit.pools.jobs import Control, job_of


@pytest.fixture
def app() -> App:
    return taskmq.testing.app()


def run(app: App, fn: Callable[..., Any], *args: Any, **options: Any) -> Completion:
    control = options.pop("control", Control())
    changes = options.pop("changes", {})
    task = app.task(name="jobs.it", **options)(fn)
    job = job_of(app, task, *args)
    return execute(app, replace(job, message=replace(job.message, **changes)), control)


def raising(exc: BaseException) -> Callable[[], None]:
    def fn() -> None:
        raise exc

    return fn


def test_a_value_comes_back_encoded(app: App) -> None:
    completion = run(app, lambda a, b: {"sum": a + b}, 1, 2)
    assert (completion.ending, completion.body) == (Ending.SUCCEEDED, b'{"sum":3}')


def test_an_async_def_runs_on_a_loop_of_its_own(app: App) -> None:
    async def fn(a: int) -> int:
        return a + 1

    assert run(app, fn, 1).body == b"2"


@pytest.mark.parametrize(
    "exc",
    [
        ValueError("boom"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        SoftTimeLimitExceeded("late"),
        BaseException("base"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_anything_raised_fails_the_task_and_nothing_else(app: App, exc: BaseException) -> None:
    completion = run(app, raising(exc))
    assert completion.ending is Ending.FAILED
    assert completion.error.startswith(type(exc).__name__)
    assert json.loads(completion.body or b"")["exc_type"] == type(exc).__name__
    assert "fn" in (completion.traceback or "")
    assert "taskmq/pools" not in (completion.traceback or "")


def test_running_out_of_memory_has_the_process_replaced(app: App) -> None:
    assert run(app, raising(MemoryError())).recycle


@pytest.mark.parametrize(
    ("exc", "ending"),
    [
        (Reject("no"), Ending.BURY),
        (Reject("later", requeue=True), Ending.REQUEUE),
        (Ignore(), Ending.IGNORED),
        (TaskCancelled("stop"), Ending.CANCELLED),
        (Retry(delay=4.0, priority=2), Ending.RETRY),
    ],
)
def test_signals_steer_the_ending(app: App, exc: BaseException, ending: Ending) -> None:
    assert run(app, raising(exc)).ending is ending


def test_a_rejection_keeps_its_reason(app: App) -> None:
    assert run(app, raising(Reject("wrong customer"))).reason == "wrong customer"


def test_a_retry_keeps_delay_and_priority_and_names_its_cause(app: App) -> None:
    cause = OSError("down")
    completion = run(app, raising(Retry(delay=4.0, priority=2, cause=cause)))
    assert (completion.delay, completion.priority) == (4.0, 2)
    assert completion.error == "OSError: down"


def test_a_policy_retries_what_it_names_until_it_is_exhausted(app: App) -> None:
    policy = RetryPolicy(
        max_retries=1, delay=2, jitter=0, on=(OSError,), give_up_on=(FileNotFoundError,)
    )
    again = run(app, raising(OSError("x")), retry=policy, retry_priority="lower")
    assert (again.ending, again.delay, again.priority) == (Ending.RETRY, 2, -1)
    last = run(app, raising(OSError("x")), retry=policy, changes={"retries": 1})
    assert (last.ending, last.reason) == (Ending.FAILED, "retries-exhausted")
    other = run(app, raising(FileNotFoundError("x")), retry=policy)
    assert (other.ending, other.reason) == (Ending.FAILED, "")


def test_an_unknown_name_and_an_unreadable_body_are_told_apart(app: App) -> None:
    assert run(app, lambda: None, changes={"task": "jobs.other"}).ending is Ending.UNREGISTERED
    broken = run(app, lambda: None, changes={"body": b"[[1"})
    assert (broken.ending, bool(broken.error)) == (Ending.UNREADABLE, True)
    refused = run(app, lambda: None, changes={"content_type": "application/x-python-serialize"})
    assert refused.ending is Ending.UNREADABLE


class Hostile(Exception):
    def __init__(self) -> None:
        super().__init__(object())

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __repr__(self) -> str:
        raise SystemExit(9)


class HostileValue:
    def __repr__(self) -> str:
        raise SystemExit(9)

    def __json__(self) -> Any:
        raise SystemExit(9)


@pytest.mark.parametrize(
    "fn",
    [raising(Hostile()), lambda: HostileValue(), lambda: {1: {2: object()}}, lambda: float("nan")],
    ids=["hostile exception", "hostile value", "no json", "nan"],
)
def test_what_cannot_be_encoded_is_a_failure_that_says_so(app: App, fn: Callable[[], Any]) -> None:
    completion = run(app, fn)
    assert completion.ending is Ending.FAILED
    assert completion.error
    assert json.loads(completion.body or b"")["exc_type"]


def test_a_huge_traceback_is_cut(app: App) -> None:
    completion = run(app, raising(ValueError("x" * 10_000_000)))
    assert len(completion.traceback or "") <= 70_000
    assert len(completion.body or b"") <= 64 * 1024
    assert len(completion.error) < 1_000


def test_the_context_is_the_run_s_and_gone_afterwards(app: App) -> None:
    seen = []

    def fn(ctx: Context) -> None:
        seen.append((ctx is current_context(), ctx.task_id, ctx.retries))

    run(app, fn, bind=True, changes={"task_id": "me", "retries": 2})
    assert seen == [(True, "me", 2)]
    assert current_context() is None


def test_progress_and_cancellation_go_through_the_control(app: App) -> None:
    control = Control()

    def fn(ctx: Context) -> None:
        ctx.progress(0.5, "half")
        control.reason = "revoked"
        ctx.check_cancelled()

    assert run(app, fn, bind=True, control=control).ending is Ending.CANCELLED
    assert control.reports == [(0.5, "half")]


def test_hooks_and_middleware_are_around_the_run(app: App) -> None:
    told: list[Any] = []
    app.hooks.before_run.connect(lambda event: told.append(("before", event.args)))

    def after(event: RunEvent) -> None:
        told.append(("after", event.state, event.value))

    app.hooks.after_run.connect(after)

    def middleware(call_next: Callable[[], Any], context: Any) -> Any:
        told.append(("in", context.task_id))
        return call_next() * 10

    app.hooks.middleware.append(middleware)
    completion = run(app, lambda a: a, 4, changes={"task_id": "me"})
    assert completion.body == b"40"
    assert told == [("before", (4,)), ("in", "me"), ("after", State.SUCCEEDED, 40)]


def test_a_hook_that_raises_does_not_touch_the_task(app: App) -> None:
    app.hooks.before_run.connect(lambda event: 1 / 0)
    app.hooks.after_run.connect(lambda event: 1 / 0)
    assert run(app, lambda: 1).ending is Ending.SUCCEEDED


def test_what_a_run_published_is_told_with_its_end(app: App) -> None:
    def fn(ctx: Context) -> None:
        ctx.publish("jobs.other")
        ctx.publish("jobs.other", task_id="second")

    completion = run(app, fn, bind=True)
    assert len(completion.children) == 2
    assert completion.children[1] == "second"


def test_what_a_foreign_body_carries_is_read_where_the_body_is(app: App) -> None:
    sig = {"task": "jobs.next", "args": [1]}
    embed = {"callbacks": [sig], "errbacks": None, "chain": None, "chord": None}
    body = json.dumps([[], {}, embed]).encode()
    completion = run(app, lambda: 1, changes={"body": body})
    assert json.loads(completion.follow or "") == {"callbacks": [sig]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("delay", "soon"),
        ("delay", float("nan")),
        ("delay", float("inf")),
        ("delay", -1.0),
        ("delay", True),
        ("priority", 99),
        ("priority", "9"),
        ("body", "text"),
    ],
)
@pytest.mark.parametrize("how", ["made", "set"])
def test_a_retry_with_a_wrong_value_fails_the_run_and_says_what_is_wrong(
    app: App, field: str, value: Any, how: str
) -> None:
    def fn() -> None:
        if how == "made":
            raise Retry("again", **{field: value})
        exc = Retry("again")
        setattr(exc, field, value)
        raise exc

    completion = run(app, fn)
    assert completion.ending is Ending.FAILED
    assert f"Retry({field})" in completion.error


def test_a_retry_that_a_subclass_made_without_its_fields_is_a_failure(app: App) -> None:
    class Odd(Retry):
        def __init__(self) -> None:
            """Without its parent's."""

    assert run(app, raising(Odd())).ending is Ending.FAILED


def test_a_retry_may_wait_a_timedelta(app: App) -> None:
    assert run(app, raising(Retry(delay=timedelta(minutes=1)))).delay == 60.0
