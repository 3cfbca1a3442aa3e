"""Commands to the workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from taskmq.compat import Celery
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.testing import VirtualWorker
from taskmq.worker.stopping import Stage
from tests.compat.conftest import MakeWorker


@contextmanager
def answering(worker: VirtualWorker) -> Iterator[None]:
    """A worker whose loop turns beside the test, so that it answers while the test waits."""
    done = threading.Event()
    # A worker is asked once it has reported itself.
    worker.step()

    def turn() -> None:
        while not done.wait(0.002):
            # Control is looked at in intervals of the virtual clock.
            worker.clock.advance(0.05)
            worker.step()

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=10)


def test_ping_is_answered_by_every_worker(app: Celery, make_worker: MakeWorker) -> None:
    with answering(make_worker(app)):
        assert app.control.ping(timeout=10) == [{"test-worker": {"ok": "pong"}}]
        assert app.control.inspect(timeout=10).ping() == {"test-worker": {"ok": "pong"}}
        answers = app.control.broadcast("ping", reply=True, timeout=10, destination=["test-worker"])
        assert answers == [{"test-worker": {"ok": "pong"}}]


def test_nobody_to_answer_is_none_as_in_celery(app: Celery) -> None:
    assert app.control.ping(timeout=0.1) == []
    assert app.control.inspect(timeout=0.1).active() is None
    assert app.control.inspect(timeout=0.1).registered() is None


def test_inspect_tells_what_a_worker_is_and_does(app: Celery, make_worker: MakeWorker) -> None:
    app.task(name="job")(lambda: None)
    worker = make_worker(app, queues=["celery", "other"])

    with answering(worker):
        inspect: Any = app.control.inspect(timeout=10)
        assert inspect.active() == {"test-worker": []}
        assert "job" in inspect.registered()["test-worker"]
        assert [q["name"] for q in inspect.active_queues()["test-worker"]] == ["celery", "other"]
        assert set(inspect.stats()) == {"test-worker"}


def test_active_task_is_told_in_celerys_shape(app: Celery, make_worker: MakeWorker) -> None:
    seen: list[Any] = []
    job = app.task(name="job")(lambda: seen.append(_active(app)))
    result = job.apply_async(priority=4)
    make_worker(app).run_until_idle()

    told = seen[0]
    assert (told["id"], told["name"], told["args"]) == (result.id, "job", None)
    assert told["delivery_info"] == {
        "exchange": "",
        "routing_key": "celery",
        "priority": 4,
        "redelivered": False,
    }


def _active(app: Celery) -> Any:
    from taskmq.compat.app.control import _request

    task: Any = app.current_task
    message = app.engine.transport.operators.find(task.request.id)[0].message
    entry = {"task_id": message.task_id, "task": message.task, "queue": message.queue}
    return _request({**entry, "priority": message.priority, "deliveries": 1}, "w")


def test_revocation_is_stored_and_holds_without_any_worker(
    app: Celery, make_worker: MakeWorker
) -> None:
    runs: list[str] = []
    job = app.task(name="job")(runs.append)
    results = [job.delay("a"), job.delay("b"), job.delay("c")]

    app.control.revoke(results[0].id)
    app.control.revoke([results[1].id])
    app.control.revoke("not.yet.sent")
    later = job.apply_async(("d",), task_id="not.yet.sent")
    make_worker(app).run_until_idle()

    assert runs == ["c"]
    assert [r.state for r in (*results, later)] == ["REVOKED", "REVOKED", "SUCCESS", "REVOKED"]


def test_terminate_takes_signals_that_end_a_process_and_no_others(app: Celery) -> None:
    import signal

    for accepted in ("SIGTERM", "SIGKILL", signal.SIGTERM, None):
        app.control.revoke("x", terminate=True, signal=accepted)
    with pytest.raises(ImproperlyConfigured, match="SIGUSR2"):
        app.control.revoke("x", terminate=True, signal="SIGUSR2")


def test_purge_deletes_what_waits(app: Celery) -> None:
    job = app.task(name="job")(lambda: None)
    for _ in range(3):
        job.delay()

    assert app.control.purge() == 3
    assert app.control.discard_all() == 0


@pytest.mark.parametrize("name", ["add_consumer", "rate_limit", "pool_grow", "enable_events"])
def test_command_the_engine_does_not_have_says_what_to_use(app: Celery, name: str) -> None:
    with pytest.raises(NotImplementedError, match=name):
        getattr(app.control, name)
    with pytest.raises(NotImplementedError, match=name):
        app.control.broadcast(name)
    for question in ("reserved", "scheduled", "revoked"):
        with pytest.raises(NotImplementedError, match="taskmq"):
            getattr(app.control.inspect(), question)()
    with pytest.raises(AttributeError, match="no_such"):
        _ = app.control.no_such


def test_workers_are_named_and_not_matched(app: Celery) -> None:
    with pytest.raises(ImproperlyConfigured, match="destination"):
        app.control.inspect(pattern="web*")
    with pytest.raises(ImproperlyConfigured, match="destination"):
        app.control.broadcast("ping", pattern="web*")


def test_remote_control_can_be_turned_off(
    app: Celery, make_worker: MakeWorker, caplog: pytest.LogCaptureFixture
) -> None:
    app.conf.worker_enable_remote_control = False
    result = app.task(lambda: None).delay()
    worker = make_worker(app)

    with answering(worker):
        assert app.control.ping(timeout=0.2) == []
    app.control.revoke(result.id)
    worker.app.transport.coordination.send("shutdown")
    worker.advance(5)

    assert worker.coordinator.stage is Stage.RUNNING
    assert "control command 'ping' is not sent" in caplog.text


def test_where_a_task_is_can_be_asked(app: Celery) -> None:
    result = app.task(lambda: None).apply_async(countdown=60)

    assert app.control.inspect().query_task(result.id) == {result.id: "scheduled"}
