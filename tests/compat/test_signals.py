"""Signals: connecting, sending, and those around a publish and a worker's life."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from taskmq.compat import Celery, signals
from taskmq.compat.app.workers import WorkerHandle
from taskmq.compat.exceptions import CeleryWarning
from taskmq.compat.utils.dispatch import Signal
from taskmq.hooks import WorkerEvent
from tests.compat.conftest import MakeWorker


@pytest.fixture(autouse=True)
def no_receivers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Receivers connected here are gone afterwards."""
    for name in signals.__all__:
        monkeypatch.setattr(getattr(signals, name), "_receivers", [])


def test_receiver_is_called_with_keywords_and_its_answer_returned() -> None:
    signal = Signal(name="s")

    @signal.connect
    def receiver(sender: Any, value: int, **kwargs: Any) -> int:
        return value + 1

    assert signal.send(sender="x", value=1) == [(receiver, 2)]


def test_receiver_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    signal = Signal(name="s")
    seen = []

    def broken(**kwargs: Any) -> None:
        raise ValueError("mine")

    signal.connect(broken)
    signal.connect(lambda **kwargs: seen.append(1), weak=False)
    answers = signal.send(sender=None)

    assert seen == [1]
    assert isinstance(answers[0][1], ValueError)
    assert "mine" in caplog.text


def test_receivers_are_held_weakly_unless_asked_otherwise() -> None:
    signal = Signal(name="s")

    class Holder:
        def method(self, **kwargs: Any) -> str:
            return "called"

    holder = Holder()
    signal.connect(holder.method)
    assert [answer for _, answer in signal.send(sender=None)] == ["called"]
    del holder
    gc.collect()
    assert signal.send(sender=None) == []

    signal.connect(lambda **kwargs: "kept", weak=False)
    gc.collect()
    assert [answer for _, answer in signal.send(sender=None)] == ["kept"]


def test_receiver_may_want_one_sender_by_task_or_by_name(app: Celery) -> None:
    signal = Signal(name="s")
    mine = app.task(name="mine")(lambda: None)
    other = app.task(name="other")(lambda: None)
    seen: list[Any] = []
    signal.connect(lambda sender, **kw: seen.append("task"), sender=mine, weak=False)
    signal.connect(lambda sender, **kw: seen.append("name"), sender="mine", weak=False)

    signal.send(sender=other)
    assert seen == []
    signal.send(sender=mine)
    signal.send(sender="mine")

    assert sorted(seen) == ["name", "name", "task", "task"]


def test_connecting_twice_under_one_uid_calls_once() -> None:
    signal = Signal(name="s")
    seen = []
    for _ in range(2):
        signal.connect(lambda **kw: seen.append(1), weak=False, dispatch_uid="one")

    signal.send(sender=None)

    assert seen == [1]
    assert signal.disconnect(dispatch_uid="one")
    assert not signal.disconnect(dispatch_uid="one")
    assert not signal


def test_receiver_can_be_called_again_after_an_error() -> None:
    signal = Signal(name="s")
    calls: list[int] = []

    def shaky(**kwargs: Any) -> str:
        calls.append(1)
        if len(calls) < 2:
            raise OSError
        return "done"

    signal.connect(shaky, retry=True)

    assert [answer for _, answer in signal.send(sender=None)] == ["done"]


def test_connecting_to_a_signal_that_is_never_sent_is_said() -> None:
    never = [name for name in signals.__all__ if getattr(signals, name).never_sent]
    assert "beat_init" in never
    assert "task_prerun" not in never

    for name in never:
        with pytest.warns(CeleryWarning, match=name):
            getattr(signals, name).connect(lambda **kw: None, weak=False)


# -- around a publish -----------------------------------------------------------------------------


def test_headers_added_before_a_publish_travel_with_the_message(
    app: Celery, make_worker: MakeWorker
) -> None:
    job = app.task(bind=True, name="job")(lambda self, *a, **k: self.request.get("trace"))

    def add_trace(headers: dict[str, Any], **kwargs: Any) -> None:
        headers["trace"] = f"of {headers['id']}"

    signals.before_task_publish.connect(add_trace)
    result = job.delay(1)
    make_worker(app).run_until_idle()

    assert result.get() == f"of {result.id}"


def test_publish_signals_tell_of_the_message(app: Celery) -> None:
    seen: list[tuple[str, dict[str, Any]]] = []
    for name in ("before", "after"):
        getattr(signals, f"{name}_task_publish").connect(
            lambda name=name, **kw: seen.append((name, kw)), weak=False
        )
    job = app.task(name="job")(lambda *a, **k: None)

    result = job.apply_async((1,), {"k": 2}, queue="q", priority=3, headers={"own": 1})

    assert [name for name, _ in seen] == ["before", "after"]
    before = seen[0][1]
    assert (before["sender"], before["routing_key"]) == ("job", "q")
    assert before["body"][:2] == ([1], {"k": 2})
    assert before["properties"] == {"correlation_id": result.id, "priority": 3}
    headers = before["headers"]
    assert (headers["id"], headers["task"], headers["own"]) == (result.id, "job", 1)
    assert (headers["retries"], headers["root_id"], headers["argsrepr"]) == (0, result.id, "(1,)")


def test_nothing_is_announced_of_a_call_that_is_refused(app: Celery) -> None:
    after: list[Any] = []
    signals.before_task_publish.connect(lambda **kw: None, weak=False)
    signals.after_task_publish.connect(lambda **kw: after.append(kw), weak=False)
    job = app.task(name="job")(lambda x: None)

    with pytest.raises(TypeError):
        job.delay()

    assert after == []


# -- of a worker ----------------------------------------------------------------------------------


def test_signals_of_a_workers_life_come_in_celerys_order(
    app: Celery, make_worker: MakeWorker
) -> None:
    seen: list[tuple[str, Any]] = []
    names = (
        "after_setup_logger",
        "after_setup_task_logger",
        "celeryd_init",
        "worker_init",
        "celeryd_after_setup",
        "worker_ready",
        "worker_shutting_down",
        "worker_shutdown",
    )
    for name in names:
        getattr(signals, name).connect(
            lambda name=name, **kw: seen.append((name, kw["sender"])), weak=False
        )
    worker = make_worker(app)
    event = WorkerEvent(worker=worker)

    for hook in ("worker_init", "worker_ready", "worker_stopping", "worker_stopped"):
        getattr(app.engine.hooks, hook).send(event)

    assert [name for name, _ in seen] == list(names)
    senders = dict(seen)
    assert senders["celeryd_init"] == senders["worker_shutting_down"] == "test-worker"
    ready = senders["worker_ready"]
    assert isinstance(ready, WorkerHandle)
    assert (ready.app, ready.hostname, ready.concurrency) == (app, "test-worker", 1)


def test_project_that_sets_logging_up_itself_is_left_to_it(
    app: Celery, make_worker: MakeWorker
) -> None:
    seen: list[str] = []
    signals.setup_logging.connect(lambda **kw: seen.append("setup"), weak=False)
    signals.after_setup_logger.connect(lambda **kw: seen.append("after"), weak=False)

    app.engine.hooks.worker_init.send(WorkerEvent(worker=make_worker(app)))

    assert seen == ["setup"]


def test_signals_of_a_child_are_sent_in_it(app: Celery) -> None:
    seen: list[str] = []
    signals.worker_process_init.connect(lambda **kw: seen.append("init"), weak=False)
    signals.worker_process_shutdown.connect(lambda **kw: seen.append("exit"), weak=False)

    app.engine.hooks.child_init.send(app.engine)
    app.engine.hooks.child_exit.send(app.engine)

    assert seen == ["init", "exit"]


def test_received_task_is_announced_where_somebody_listens(
    app: Celery, make_worker: MakeWorker
) -> None:
    seen: list[tuple[str, str]] = []
    signals.task_received.connect(
        lambda request, **kw: seen.append((request.name, request.id)), weak=False
    )
    result = app.task(name="job")(lambda: None).delay()
    make_worker(app).run_until_idle()

    assert seen == [("job", result.id)]


def test_receiver_that_came_after_the_first_call_hears_of_received_tasks_too(
    app: Celery, make_worker: MakeWorker
) -> None:
    seen: list[str] = []
    result = app.task(name="job")(lambda: None).delay()
    signals.task_received.connect(lambda request, **kw: seen.append(request.id), weak=False)

    worker = make_worker(app)
    app.engine.hooks.worker_init.send(WorkerEvent(worker=worker))
    worker.run_until_idle()

    assert seen == [result.id]


def test_start_of_a_worker_says_what_has_no_effect_and_what_looks_misspelt(
    app: Celery, make_worker: MakeWorker, caplog: pytest.LogCaptureFixture
) -> None:
    app.conf.beat_max_loop_interval = 5
    app.conf.broker_heartbeat = 10
    app.conf.task_alway_eager = True
    app.conf.taskmq_poll_interval = 0.05
    app.conf.ONCE = {}
    app.task(name="job", ignore_results=True, verbose_name="Job")(lambda: None)

    app.engine.hooks.worker_init.send(WorkerEvent(worker=make_worker(app)))

    said = [r.message for r in caplog.records if r.name == "taskmq.compat"]
    # `taskmq doctor` and `taskmq config check` ask for the same.
    assert [line for adviser in app.engine.hooks.advisers for line in adviser()] == said
    assert said == [
        "setting beat_max_loop_interval has no effect: the periodic process (beat) is not there yet",
        "setting 'task_alway_eager' is not one of Celery's; is 'task_always_eager' meant?",
        "task job: unknown option 'ignore_results'. Did you mean 'ignore_result'?",
    ]
