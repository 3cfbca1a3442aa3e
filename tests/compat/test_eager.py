"""Running in place: `task.apply()` and `task_always_eager`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import kombu.exceptions
import pytest

from taskmq.compat import Celery, Task, chain, chord, group
from taskmq.compat.exceptions import AlwaysEagerIgnored, ChordError, MaxRetriesExceededError
from taskmq.compat.result import EagerResult
from taskmq.errors import PriorityError
from tests.compat.conftest import MakeApp


@pytest.fixture
def eager(make_app: MakeApp) -> Celery:
    """An app whose calls run in place."""
    return make_app(task_always_eager=True)


def test_apply_runs_the_task_and_returns_what_came_of_it(app: Celery) -> None:
    add = app.task(lambda x, y=0: x + y)
    boom = app.task(name="boom")(lambda: 1 / 0)

    done, failed = add.apply((1,), {"y": 2}), boom.apply()

    assert (done.get(), done.state, done.successful(), done.ready()) == (3, "SUCCESS", True, True)
    assert (failed.state, failed.failed()) == ("FAILURE", True)
    assert "ZeroDivisionError" in failed.traceback
    assert isinstance(failed.get(propagate=False), ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        failed.get()


def test_apply_raises_with_throw_or_when_errors_propagate(make_app: MakeApp) -> None:
    app = make_app(task_eager_propagates=True)
    boom = app.task(lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        boom.apply()
    assert boom.apply(throw=False).failed()


def test_eager_call_runs_now_whatever_its_times_say(eager: Celery) -> None:
    add = eager.task(lambda x: x + 1)

    results = [
        add.delay(1),
        add.apply_async((1,), countdown=3600),
        add.apply_async((1,), eta=datetime.now() + timedelta(days=1)),
    ]

    assert [r.get() for r in results] == [2, 2, 2]
    assert all(isinstance(r, EagerResult) for r in results)
    assert eager.engine.transport.operators.queues() == []


def test_eager_arguments_take_the_way_through_the_serializer(eager: Celery) -> None:
    kind = eager.task(lambda x: type(x).__name__)

    assert kind.delay((1, 2)).get() == "list"
    with pytest.raises(kombu.exceptions.EncodeError):
        kind.delay({1, 2})


def test_eager_call_is_checked_as_a_real_one(eager: Celery) -> None:
    add = eager.task(lambda x: x)

    with pytest.raises(TypeError):
        add.delay()
    with pytest.raises(PriorityError):
        add.apply_async((1,), priority=10)


def test_eager_request_says_that_it_is(eager: Celery) -> None:
    @eager.task(bind=True)
    def job(self: Any) -> Any:
        request = self.request
        return [request.is_eager, request.called_directly, request.id, request.delivery_info]

    result = job.apply_async(queue="q", priority=3)

    assert result.get()[:3] == [True, False, result.id]
    assert result.get()[3] == {
        "is_eager": True,
        "exchange": None,
        "routing_key": "q",
        "priority": 3,
    }


def test_eager_retries_happen_at_once_and_end(eager: Celery) -> None:
    runs: list[int] = []

    @eager.task(bind=True, max_retries=2)
    def job(self: Any, good: bool) -> str:
        runs.append(self.request.retries)
        if good and self.request.retries:
            return "done"
        raise self.retry(countdown=3600)

    assert job.delay(True).get() == "done"
    worn_out = job.delay(False)

    assert runs == [0, 1, 0, 1, 2]
    assert isinstance(worn_out.result, MaxRetriesExceededError)


def test_eager_hooks_run(eager: Celery) -> None:
    notes: list[str] = []

    class Noted(Task):
        def before_start(self, *_: Any) -> None:
            notes.append("before")

        def on_success(self, *_: Any) -> None:
            notes.append("success")

        def after_return(self, status: str, *_: Any) -> None:
            notes.append(status)

    eager.task(base=Noted)(lambda: None).delay()

    assert notes == ["before", "success", "SUCCESS"]


def test_eager_callbacks_run(eager: Celery) -> None:
    noted: list[Any] = []
    note = eager.task(name="note")(noted.append)
    ok = eager.task(name="ok")(lambda: 5)
    boom = eager.task(name="boom")(lambda: 1 / 0)

    ok.apply_async(link=note.s(), link_error=note.si("no"))
    failed = boom.apply_async(link=note.si("no"), link_error=note.s())

    assert noted == [5, failed.id]


def test_waiting_inside_an_eager_task_is_refused_as_in_a_worker(eager: Celery) -> None:
    inner = eager.task(name="inner")(lambda: 1)

    @eager.task
    def outer() -> Any:
        return inner.delay().get()

    assert isinstance(outer.delay().get(propagate=False), RuntimeError)


def test_eager_async_task_runs(eager: Celery) -> None:
    @eager.task
    async def job(x: int) -> int:
        return x + 1

    assert job.delay(1).get() == 2


def test_send_task_sends_all_the_same_and_warns(eager: Celery) -> None:
    with pytest.warns(AlwaysEagerIgnored):
        result = eager.send_task("elsewhere")

    assert result.taskmq_state == "queued"


def test_eager_result_is_stored_where_the_project_asks_for_it(make_app: MakeApp) -> None:
    app = make_app(task_always_eager=True, task_store_eager_result=True)
    result = app.task(lambda: 7).delay()

    assert app.AsyncResult(result.id).get(timeout=1) == 7


def test_switching_eager_mode_counts_from_the_next_call(app: Celery) -> None:
    job = app.task(lambda: 1)

    real = job.delay()
    app.conf.task_always_eager = True
    eager = job.delay()
    app.conf.CELERY_ALWAYS_EAGER = False

    assert type(real).__name__ == type(job.delay()).__name__ == "AsyncResult"
    assert isinstance(eager, EagerResult)


def test_eager_workflows_run_in_place(eager: Celery) -> None:
    add = eager.task(name="add")(lambda x, y: x + y)
    total = eager.task(name="total")(sum)
    boom = eager.task(name="boom")(lambda: 1 / 0)

    assert chain(add.s(1, 2), add.s(10)).delay().get() == 13
    assert chain(add.s(1, 2), boom.si(), add.s(10))().state == "FAILURE"
    assert group(add.s(i, i) for i in range(3))().get() == [0, 2, 4]
    assert chord((add.s(i, i) for i in range(3)), total.s())().get() == 6
    assert chord([], total.s())().get() == 0
    failed = chord([add.s(1, 1), boom.s()], total.s())()
    assert isinstance(failed.get(propagate=False), ChordError)
