"""Runs of other kinds: coroutines, soft limits, runs that were cut off, joins inside a task."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType
from typing import Any

import pytest

from taskmq.compat import Celery, current_task
from taskmq.compat.exceptions import (
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
from tests.compat.noted import Noted


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
