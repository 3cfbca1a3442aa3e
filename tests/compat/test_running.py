"""A run in a worker: request, hooks, signals, endings."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType
from typing import Any

import pytest

from taskmq.compat import Celery, Task, current_task, signals
from taskmq.compat.exceptions import (
    Ignore,
    Reject,
    SoftTimeLimitExceeded,
    WorkerLostError,
    caught_as_billiard,
)
from taskmq.hooks import CutOffEvent
from taskmq.message import Delivery
from taskmq.pools.base import Job
from taskmq.pools.execution import execute
from taskmq.states import State
from tests.compat.conftest import MakeWorker


class Noted(Task):
    """Notes every hook it is called with, in order."""

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        self.notes.append(("before_start", self.request.id == task_id, args, kwargs))

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        self.notes.append(("on_success", retval, self.request.id == task_id))

    def on_failure(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        self.notes.append(("on_failure", repr(exc), "Traceback" in str(einfo)))

    def on_retry(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        self.notes.append(("on_retry", repr(exc)))

    def after_return(
        self, status: str, retval: Any, task_id: str, args: Any, kwargs: Any, einfo: Any
    ) -> None:
        self.notes.append(("after_return", status, str(retval)))


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What the signals of a run were sent with, in order."""
    found: list[tuple[str, dict[str, Any]]] = []
    for name in ("prerun", "postrun", "success", "failure", "retry", "revoked"):
        signal = getattr(signals, f"task_{name}")
        monkeypatch.setattr(signal, "_receivers", [])

        def receive(name: str = name, **kwargs: Any) -> None:
            found.append((name, kwargs))

        signal.connect(receive, weak=False)
    return found


def test_hooks_and_signals_of_a_success_come_in_celerys_order(
    app: Celery, make_worker: MakeWorker, heard: list[Any]
) -> None:
    @app.task(base=Noted)
    def job(x: int, y: int = 0) -> int:
        return x + y

    result = job.delay(1, y=2)
    make_worker(app).run_until_idle()

    assert job.notes == [
        ("before_start", True, [1], {"y": 2}),
        ("on_success", 3, True),
        ("after_return", "SUCCESS", "3"),
    ]
    assert [name for name, _ in heard] == ["prerun", "success", "postrun"]
    prerun, success, postrun = (kwargs for _, kwargs in heard)
    assert prerun["sender"] == job
    assert (prerun["task_id"], prerun["args"], prerun["kwargs"]) == (result.id, [1], {"y": 2})
    assert success["result"] == 3
    assert (postrun["retval"], postrun["state"], postrun["task"]) == (3, "SUCCESS", job)


def test_hooks_and_signals_of_a_failure(
    app: Celery, make_worker: MakeWorker, heard: list[Any]
) -> None:
    @app.task(base=Noted)
    def job() -> None:
        raise ValueError("no")

    result = job.delay()
    make_worker(app).run_until_idle()

    assert job.notes[1:] == [
        ("on_failure", "ValueError('no')", True),
        ("after_return", "FAILURE", "no"),
    ]
    assert [name for name, _ in heard] == ["prerun", "failure", "postrun"]
    failure = heard[1][1]
    assert (failure["task_id"], repr(failure["exception"])) == (result.id, "ValueError('no')")
    assert failure["einfo"].type is ValueError
    assert failure["traceback"] is not None
    assert heard[2][1]["state"] == "FAILURE"
    assert "ValueError: no" in result.traceback


def test_hooks_and_signals_of_a_retry_leave_after_return_out(
    app: Celery, make_worker: MakeWorker, heard: list[Any]
) -> None:
    @app.task(base=Noted, bind=True)
    def job(self: Any) -> None:
        raise self.retry(exc=OSError("later"), countdown=9)

    result = job.delay()
    make_worker(app).run_until_idle()

    assert job.notes[1:] == [("on_retry", "OSError('later')")]
    assert [name for name, _ in heard] == ["prerun", "retry", "postrun"]
    retry = heard[1][1]
    assert retry["request"].id == result.id
    assert str(retry["reason"]) == "Retry in 9.0s: OSError('later')"
    assert heard[2][1]["state"] == "RETRY"


def test_value_that_cannot_be_stored_is_a_failure_to_the_hooks_too(
    app: Celery, make_worker: MakeWorker
) -> None:
    @app.task(base=Noted)
    def job() -> Any:
        return object()

    result = job.delay()
    make_worker(app).run_until_idle()

    assert result.state == "FAILURE"
    assert [note[0] for note in job.notes] == ["before_start", "on_failure", "after_return"]


def test_error_in_before_start_fails_the_task_and_one_in_a_later_hook_does_not(
    app: Celery, make_worker: MakeWorker, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Task):
        where = ""

        def before_start(self, *_: Any) -> None:
            if self.where == "before":
                raise RuntimeError("hook")

        def on_success(self, *_: Any) -> None:
            raise RuntimeError("hook")

    early = app.task(base=Broken, where="before", name="early")(lambda: 1)
    late = app.task(base=Broken, where="after", name="late")(lambda: 1)
    worker = make_worker(app)
    results = early.delay(), late.delay()
    worker.run_until_idle()

    assert [r.state for r in results] == ["FAILURE", "SUCCESS"]
    assert "a hook of task late" in caplog.text


def test_request_says_what_the_message_said(app: Celery, make_worker: MakeWorker) -> None:
    seen: list[Any] = []

    @app.task(bind=True, time_limit=60, soft_time_limit=50)
    def job(self: Any, *args: Any, **kwargs: Any) -> None:
        seen.append(dict(vars(self.request)))
        seen.append((current_task.name, self.request.called_directly, self.request.is_eager))

    result = job.apply_async((1,), {"k": 2}, queue="q", priority=3, expires=60, headers={"h": 1})
    make_worker(app, queues=["q"]).run_until_idle()

    request, others = seen
    assert (request["id"], request["task"], request["retries"]) == (result.id, job.name, 0)
    assert (request["args"], request["kwargs"]) == ([1], {"k": 2})
    assert request["delivery_info"] == {
        "exchange": "",
        "routing_key": "q",
        "priority": 3,
        "redelivered": False,
    }
    assert request["timelimit"] == [60, 50]
    assert request["hostname"] == "test-worker"
    assert request["expires"].startswith("2023-11-14T")
    assert (request["root_id"], request["parent_id"], request["correlation_id"]) == (
        result.id,
        None,
        result.id,
    )
    assert others == (job.name, False, False)


def test_request_outside_of_a_run_is_empty(app: Celery) -> None:
    @app.task(bind=True)
    def job(self: Any) -> Any:
        return self.request.id, self.request.called_directly, self.request.retries

    assert job() == (None, True, 0)
    assert job.request.id is None
    assert current_task._get_current_object() is None


def test_request_can_be_pushed_for_a_test(app: Celery) -> None:
    job = app.task(bind=True)(lambda self: self.request.retries)

    job.push_request(retries=4)
    assert job.run() == 4
    job.pop_request()
    assert job.run() == 0


def test_nested_direct_call_has_a_request_of_its_own(app: Celery, make_worker: MakeWorker) -> None:
    @app.task(bind=True)
    def inner(self: Any) -> Any:
        return [self.request.called_directly, self.request.id]

    @app.task(bind=True)
    def outer(self: Any) -> Any:
        before = self.request.id
        return [inner(), before == self.request.id, current_task.name == self.name]

    result = outer.delay()
    make_worker(app).run_until_idle()

    assert result.get() == [[True, None], True, True]


def test_call_method_of_a_base_class_wraps_the_body_once(
    app: Celery, make_worker: MakeWorker
) -> None:
    entered: list[Any] = []

    class InContext(Task):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            entered.append(self.request.id)
            return super().__call__(*args, **kwargs)

    @app.task(base=InContext, bind=True)
    def job(self: Any, x: int) -> Any:
        return [x, self.request.id, self.request.called_directly]

    result = job.delay(1)
    make_worker(app).run_until_idle()

    assert result.get() == [1, result.id, False]
    assert entered == [result.id]
    assert job(2) == [2, None, True]


def test_ignored_run_leaves_the_state_the_task_gave_itself(
    app: Celery, make_worker: MakeWorker
) -> None:
    @app.task(bind=True)
    def halts(self: Any) -> None:
        self.update_state(state="PROGRESS", meta={"done": 1})
        self.update_state(state="HALTED", meta={"done": 2})
        raise Ignore

    @app.task(bind=True)
    def fails(self: Any) -> None:
        self.update_state(
            state="FAILURE", meta={"exc_type": "ValueError", "exc_message": "said so"}
        )
        raise Ignore

    worker = make_worker(app)
    halted, failed = halts.delay(), fails.delay()
    worker.run_until_idle()

    assert (halted.state, halted.info, halted.ready()) == ("HALTED", {"done": 2}, False)
    assert (failed.state, repr(failed.result)) == ("FAILURE", "ValueError('said so')")


def test_progress_is_seen_while_the_task_runs_and_gone_at_its_end(
    app: Celery, make_worker: MakeWorker
) -> None:
    seen: list[Any] = []
    worker = make_worker(app)

    @app.task(bind=True)
    def job(self: Any) -> str:
        self.update_state(state="PROGRESS", meta={"done": 1, "total": 2})
        seen.append(self.request._own_state)
        return "end"

    result = job.delay()
    worker.run_until_idle()

    assert seen == [("PROGRESS", {"done": 1, "total": 2})]
    assert (result.state, result.info) == ("SUCCESS", "end")


def test_state_of_another_task_can_be_set_by_its_id(app: Celery) -> None:
    job = app.task(lambda: None)

    job.update_state(task_id="elsewhere", state="UPLOADING", meta=[1])

    assert (app.AsyncResult("elsewhere").state, app.AsyncResult("elsewhere").info) == (
        "UPLOADING",
        [1],
    )
    with pytest.raises(ValueError, match="task_id"):
        _raise_as_value_error(lambda: job.update_state(state="X"))


def _raise_as_value_error(call: Any) -> None:
    # Outside of a run there is no id: that is a matter of configuration, with the option's name in it.
    from taskmq.compat.exceptions import ImproperlyConfigured

    try:
        call()
    except ImproperlyConfigured as exc:
        raise ValueError(str(exc)) from exc


def test_rejected_message_is_put_back_or_becomes_a_dead_letter(
    app: Celery, make_worker: MakeWorker
) -> None:
    runs: list[bool] = []

    @app.task(bind=True)
    def job(self: Any, requeue: bool) -> str:
        runs.append(requeue)
        if requeue and runs.count(True) > 1:
            return "second time"
        raise Reject("not me", requeue=requeue)

    worker = make_worker(app)
    back, buried = job.delay(True), job.delay(False)
    worker.advance(60)

    assert back.get() == "second time"
    assert (buried.state, buried.taskmq_state) == ("FAILURE", State.DEAD)
    letters = app.engine.transport.operators.dead_letters()
    assert [(d.message.task_id, "not me" in d.error) for d in letters] == [(buried.id, True)]


def test_coroutine_function_is_a_task(app: Celery, make_worker: MakeWorker) -> None:
    @app.task(base=Noted, bind=True)
    async def job(self: Any, x: int) -> Any:
        await asyncio.sleep(0)
        return [x, self.request.id]

    result = job.delay(1)
    make_worker(app).run_until_idle()

    assert result.get() == [1, result.id]
    assert [note[0] for note in job.notes] == ["before_start", "on_success", "after_return"]


def test_soft_limit_raises_what_celery_and_billiard_users_catch(
    app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = app.task(lambda: None)
    billiard = ModuleType("billiard.exceptions")
    billiard.SoftTimeLimitExceeded = type("SoftTimeLimitExceeded", (Exception,), {})  # type: ignore[attr-defined]

    monkeypatch.delitem(sys.modules, "billiard.exceptions", raising=False)
    assert job.adapter.soft_limit_error is SoftTimeLimitExceeded

    monkeypatch.setitem(sys.modules, "billiard.exceptions", billiard)
    both = job.adapter.soft_limit_error
    assert issubclass(both, SoftTimeLimitExceeded)
    assert issubclass(both, billiard.SoftTimeLimitExceeded)
    assert both is job.adapter.soft_limit_error
    assert caught_as_billiard(KeyError) is KeyError


def test_run_that_was_cut_off_is_told_to_the_task_and_the_signal(
    app: Celery, heard: list[Any]
) -> None:
    job = app.task(base=Noted)(lambda x: None)
    message = app.engine.message(job.adapter, (7,))
    delivery = Delivery(message=message, token=1, seq=1, visible_at=0.0, lease_until=0.0)

    def tell(state: State | None, error: str) -> None:
        app.engine.hooks.run_cut_off.send(CutOffEvent(delivery=delivery, state=state, error=error))

    tell(None, "WorkerLost: delivered again")
    tell(State.FAILED, "WorkerLost: killed by SIGKILL")
    tell(State.FAILED, "TimeLimitExceeded: 1 s")
    tell(State.REVOKED, "TaskRevoked: terminated")

    assert job.notes == [
        ("on_failure", "WorkerLostError('killed by SIGKILL')", False),
        ("on_failure", "TimeLimitExceeded('1 s')", False),
    ]
    assert [name for name, _ in heard] == ["failure", "failure", "revoked"]
    assert heard[0][1]["args"] == (7,)
    assert isinstance(heard[0][1]["exception"], WorkerLostError)
    assert heard[2][1]["terminated"] is True
    assert heard[2][1]["request"].id == message.task_id


def test_run_that_was_cut_off_leaves_no_request_behind(app: Celery) -> None:
    seen: list[Any] = []
    job = app.task(bind=True)(lambda self: seen.append((self.request.id, current_task.name)))

    class Control:
        def report(self, value: Any, label: str) -> None: ...

        def cancelled(self) -> None:
            return None

    def run() -> str:
        message = app.engine.message(job.adapter)
        execute(app.engine, Job(number=1, message=message), Control())
        return message.task_id

    message = app.engine.message(job.adapter)
    from taskmq.context import Context

    context = Context(app=app.engine, task=job.adapter, message=message, control=Control())
    job.adapter.invoke(context, [], {})  # a limit hit before its after_run: nothing left the run
    second = run()

    assert seen[-1] == (second, job.name)
    assert job.request.id is None
    assert current_task._get_current_object() is None


def test_task_joins_are_refused_inside_a_run(app: Celery, make_worker: MakeWorker) -> None:
    from taskmq.compat.result import allow_join_result

    inner = app.task(name="inner")(lambda: 1)
    errors: list[str] = []

    @app.task
    def outer() -> Any:
        result = inner.delay()
        try:
            result.get(timeout=1)
        except RuntimeError as exc:
            errors.append(str(exc))
        with allow_join_result():
            return app.AsyncResult("nothing").state

    done = outer.delay()
    make_worker(app).run_until_idle()

    assert "within a task" in errors[0]
    assert done.get() == "PENDING"
