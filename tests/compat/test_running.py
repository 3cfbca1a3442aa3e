"""A run in a worker: request, hooks, signals, endings."""

from __future__ import annotations

from typing import Any

import pytest

from taskmq.compat import Celery, Task, current_task
from taskmq.compat.exceptions import (
    Ignore,
    Reject,
)
from taskmq.states import State
from tests.compat.conftest import MakeWorker
from tests.compat.noted import Noted


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
