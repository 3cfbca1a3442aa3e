"""Error callbacks: those of a single task id, and those of (request, exc, traceback)."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Any

import pytest

from taskmq.compat import Celery, Task, chain, chord, group, shared_task
from taskmq.compat.exceptions import ChordError, Reject, TaskRevokedError
from tests.compat.conftest import MakeApp, MakeWorker


@pytest.fixture
def noted() -> list[Any]:
    """What the error callbacks of a test were called with."""
    return []


@pytest.fixture
def boom(app: Celery) -> Any:
    """A task that fails."""

    @app.task(name="boom")
    def boom(x: int = 0, y: int = 0) -> None:
        raise ValueError("no", x)

    return boom


def test_callback_of_three_gets_request_exception_and_traceback_of_the_failed_task(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    @app.task
    def handler(request: Any, exc: BaseException, traceback: str) -> None:
        noted.append((request, exc, traceback))

    failed = boom.apply_async((3,), {"y": 4}, link_error=handler.s(), headers={"tenant": "a"})
    make_worker(app, name="w1").run_until_idle()

    (request, exc, traceback) = noted[0]
    assert (request.id, request.task, request.retries) == (failed.id, "boom", 0)
    assert (list(request.args), request.kwargs) == ([3], {"y": 4})
    assert (request.hostname, request.tenant) == ("w1", "a")
    assert request.delivery_info["routing_key"] == "celery"
    assert repr(exc) == "ValueError('no', 3)"
    assert traceback.startswith("Traceback")
    assert "ValueError: ('no', 3)" in traceback


def test_its_own_arguments_come_behind_the_three(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    @app.task
    def handler(request: Any, exc: Any, traceback: Any, user: int, mode: str = "") -> None:
        noted.append((request.id, user, mode))

    failed = boom.apply_async(link_error=handler.s(7, mode="x"))
    make_worker(app).run_until_idle()

    assert noted == [(failed.id, 7, "x")]


@pytest.mark.parametrize("more", [{}, {"typing": False}, {"autoretry_for": (OSError,)}])
def test_bound_callback_of_either_kind(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker, more: Any
) -> None:
    @app.task(bind=True, **more)
    def by_id(self: Any, task_id: str) -> None:
        noted.append(("by_id", task_id, self.request.id))

    @app.task(bind=True, **more)
    def handler(self: Any, request: Any, exc: Any, traceback: Any) -> None:
        noted.append(("handler", request.id, self.request.id))

    failed = boom.apply_async(link_error=[by_id.s(), handler.s()])
    make_worker(app).run_until_idle()

    assert sorted((kind, told) for kind, told, _ in noted) == [
        ("by_id", failed.id),
        ("handler", failed.id),
    ]
    assert failed.id not in [own for _, _, own in noted]


def test_callback_of_one_argument_besides_its_own_gets_the_id(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    @app.task
    def handler(task_id: str, extra: Any = None, *, mode: str = "") -> None:
        noted.append((task_id, extra, mode))

    failed = boom.apply_async(link_error=[handler.s(mode="m"), handler.s("own")])
    make_worker(app).run_until_idle()

    assert sorted(noted, key=str) == sorted(
        [(failed.id, None, "m"), (failed.id, "own", "")], key=str
    )


def test_callback_of_any_arguments_gets_the_three_as_in_celery(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    @app.task
    def handler(*args: Any) -> None:
        noted.append([type(arg).__name__ for arg in args])

    boom.apply_async(link_error=handler.s())
    make_worker(app).run_until_idle()

    assert noted == [["Context", "ValueError", "str"]]


def test_immutable_callback_takes_exactly_its_own(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    handler = app.task(name="handler")(lambda a, b, c: noted.append((a, b, c)))

    boom.apply_async(task_id="known", link_error=handler.si("known", 2, 3))
    make_worker(app).run_until_idle()

    assert noted == [("known", 2, 3)]


@pytest.mark.parametrize("link", ["link", "link_error"])
def test_callback_that_fits_neither_way_is_refused_at_the_call(
    app: Celery, boom: Any, link: str
) -> None:
    @app.task
    def handler(request: Any, exc: Any, traceback: Any, needed: Any) -> None:
        raise AssertionError("not called")

    with pytest.raises(TypeError, match="missing a required argument: 'exc'"):
        boom.apply_async(**{link: handler.s()})
    assert not app.engine.transport.operators.queues()


def test_callback_for_success_is_not_taken_for_one_of_failure(app: Celery, boom: Any) -> None:
    handler = app.task(name="handler")(lambda request, exc, traceback: None)

    with pytest.raises(TypeError, match="missing a required argument: 'exc'"):
        boom.apply_async(link=handler.s())


def test_callback_that_only_the_worker_knows(
    app: Celery, make_app: MakeApp, noted: list[Any], make_worker: MakeWorker
) -> None:
    app.task(name="boom", shared=False)(lambda: 1 / 0)
    app.task(name="handler", shared=False)(lambda request, exc, tb: noted.append(repr(exc)))
    producer = make_app(broker=app.conf.broker_url)

    producer.send_task("boom", link_error=producer.signature("handler"))
    make_worker(app).run_until_idle()

    assert "handler" not in producer.tasks
    assert noted == ["ZeroDivisionError('division by zero')"]


def test_callbacks_of_a_chain_and_of_a_chord(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    ok = app.task(name="ok")(lambda x=0: x)
    total = app.task(name="total")(sum)

    @app.task
    def handler(request: Any, exc: BaseException, traceback: Any) -> None:
        noted.append((request.task, type(exc)))

    chain(ok.s(1), boom.s(), ok.s()).on_error(handler.s())()
    chord([ok.s(1), boom.si()])(total.s().on_error(handler.s()))
    make_worker(app).run_until_idle()

    assert sorted(noted, key=str) == sorted([("boom", ValueError), ("total", ChordError)], key=str)


def test_workflow_as_a_callback(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    @app.task
    def handler(request: Any, exc: BaseException, traceback: Any) -> str:
        noted.append(request.id)
        return "told"

    then = app.task(name="then")(noted.append)
    a = boom.apply_async(link_error=chain(handler.s(), then.s()))
    b = boom.apply_async(link_error=group(handler.s(), then.s()))
    make_worker(app).run_until_idle()

    assert sorted(noted) == sorted([a.id, "told", b.id, b.id])


def test_failed_task_that_keeps_no_result(
    app: Celery, noted: list[Any], make_worker: MakeWorker
) -> None:
    boom = app.task(name="boom", ignore_result=True)(lambda x: os.environ["NO SUCH KEY"])
    handler = app.task(name="handler")(lambda request, exc, tb: noted.append((request, exc, tb)))

    failed = boom.apply_async((5,), link_error=handler.s())
    make_worker(app).run_until_idle()

    (request, exc, traceback) = noted[0]
    assert (request.id, request.task, list(request.args)) == (failed.id, "boom", [5])
    assert isinstance(exc, KeyError)
    assert "NO SUCH KEY" in str(exc)
    assert traceback.startswith("KeyError: ")


def test_exception_of_a_class_that_is_not_at_hand_keeps_its_name(
    app: Celery, noted: list[Any], make_worker: MakeWorker
) -> None:
    odd = type("Odd", (Exception,), {"__module__": "elsewhere"})

    @app.task
    def boom() -> None:
        raise odd("strange")

    handler = app.task(name="handler")(lambda request, exc, tb: noted.append(exc))

    boom.apply_async(link_error=handler.s())
    boom.apply_async(link_error=handler.s(), ignore_result=True)
    make_worker(app).run_until_idle()

    assert [(type(exc).__name__, str(exc)) for exc in noted] == [("Odd", "strange")] * 2


def test_task_that_was_revoked_or_rejected(
    app: Celery, noted: list[Any], make_worker: MakeWorker
) -> None:
    @app.task(name="job")
    def job() -> None:
        raise Reject("not mine")

    handler = app.task(name="handler")(lambda request, exc, tb: noted.append((request, exc)))

    revoked = job.apply_async(countdown=60, link_error=handler.s())
    revoked.revoke()
    rejected = job.apply_async(link_error=handler.s())
    make_worker(app).run_until_idle()

    found = {request.id: exc for request, exc in noted}
    assert isinstance(found[revoked.id], TaskRevokedError)
    assert "not mine" in str(found[rejected.id])
    assert {request.task for request, _ in noted} == {"job"}


def test_arguments_that_cannot_be_read_do_not_keep_the_callback_from_running(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    handler = app.task(name="handler")(lambda request, exc, tb: noted.append((request, exc)))
    link_error: Any = [{"task": "handler", "args": [], "kwargs": {}}]
    message = app.engine.message("boom", link_error=link_error)
    app.engine.publish([replace(message, body=b"not json")])
    make_worker(app).run_until_idle()

    (request, exc) = noted[0]
    assert (request.id, request.args) == (message.task_id, None)
    assert type(exc).__name__ == "DecodeError"
    assert handler.name == "handler"


def test_retry_of_a_callback_is_called_with_the_same(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    @app.task(bind=True)
    def handler(self: Any, request: Any, exc: Any, traceback: Any, kind: str = "") -> None:
        noted.append((request.id, repr(exc), kind, self.request.retries))
        if not self.request.retries:
            raise self.retry(countdown=5, kwargs={"kind": "again"})

    failed = boom.apply_async(link_error=handler.s())
    worker = make_worker(app)
    worker.run_until_idle()
    worker.advance(10)

    assert noted == [
        (failed.id, "ValueError('no', 0)", "", 0),
        (failed.id, "ValueError('no', 0)", "again", 1),
    ]


def test_async_and_class_based_callbacks(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    class Handler(Task):
        name = "handler"

        def run(self, request: Any, exc: Any, traceback: Any) -> None:
            noted.append(("class", request.id))

    handler = Handler()
    app.register_task(handler)

    @app.task
    async def later(request: Any, exc: Any, traceback: Any) -> None:
        noted.append(("async", request.id))

    failed = boom.apply_async(link_error=[handler.s(), later.s()])
    make_worker(app).run_until_idle()

    assert sorted(noted) == [("async", failed.id), ("class", failed.id)]


def test_shared_task_as_a_callback(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    @shared_task
    def handler(request: Any, exc: Any, traceback: Any) -> None:
        noted.append(request.id)

    failed = boom.apply_async(link_error=handler.s())
    make_worker(app).run_until_idle()

    assert noted == [failed.id]


def test_concurrency_key_of_a_callback_names_its_own_parameters(
    app: Celery, boom: Any, noted: list[Any], make_worker: MakeWorker
) -> None:
    @app.task(concurrency_key="user-{user}")
    def handler(request: Any, exc: Any, traceback: Any, user: int) -> None:
        noted.append(user)

    boom.apply_async(link_error=handler.s(4))
    make_worker(app).run_until_idle()

    assert noted == [4]


# -- eager ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["apply_async", "apply"])
def test_eager_failure_calls_both_kinds_here(make_app: MakeApp, noted: list[Any], how: str) -> None:
    app = make_app(task_always_eager=how == "apply_async")
    boom = app.task(name="boom")(lambda x: 1 / 0)
    handler = app.task(name="handler")(lambda request, exc, tb: noted.append((request, exc, tb)))
    by_id = app.task(name="by_id")(lambda task_id: noted.append(task_id))

    failed = getattr(boom, how)((1,), link_error=[handler.s(), by_id.s()])

    (request, exc, traceback), told = noted
    assert (request.id, list(request.args), told) == (failed.id, [1], failed.id)
    assert isinstance(exc, ZeroDivisionError)
    assert "ZeroDivisionError" in traceback
    assert not app.engine.transport.operators.queues()


def test_eager_callback_that_fails_is_logged_and_fails_nothing_else(
    make_app: MakeApp, noted: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(task_always_eager=True)
    boom = app.task(name="boom")(lambda: 1 / 0)
    broken = app.task(name="broken")(lambda request, exc, tb: [].pop())
    by_id = app.task(name="by_id")(noted.append)

    with caplog.at_level(logging.ERROR):
        failed = boom.apply_async(link_error=[broken.s(), by_id.s()])

    assert (failed.state, noted) == ("FAILURE", [failed.id])
    assert (
        f"error callback broken of task {failed.id} failed: IndexError('pop from empty list')"
        in caplog.text
    )
