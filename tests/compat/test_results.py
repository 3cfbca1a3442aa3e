"""Results: what a caller sees of a task before, while and after it runs."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from taskmq.compat import Celery, exceptions, states
from taskmq.compat.exceptions import (
    BackendError,
    ImproperlyConfigured,
    TaskRevokedError,
    WorkerLostError,
)
from taskmq.compat.result import AsyncResult, GroupResult, result_from_tuple
from taskmq.compat.states import celery_state
from taskmq.message import ResultRecord
from taskmq.states import State
from tests.compat.conftest import MakeApp, MakeWorker


class OwnError(Exception):
    """An error of the project's own, with an argument."""


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (State.UNKNOWN, "PENDING"),
        (State.QUEUED, "PENDING"),
        (State.SCHEDULED, "PENDING"),
        (State.RESERVED, "PENDING"),
        (State.RUNNING, "PENDING"),
        (State.RETRYING, "RETRY"),
        (State.SUCCEEDED, "SUCCESS"),
        (State.FAILED, "FAILURE"),
        (State.DEAD, "FAILURE"),
        (State.REVOKED, "REVOKED"),
        (State.EXPIRED, "REVOKED"),
    ],
)
def test_engine_state_reads_as_celerys(found: State, expected: str) -> None:
    assert celery_state(found) == expected


def test_running_is_started_only_where_it_is_tracked() -> None:
    assert celery_state(State.RUNNING, track_started=True) == "STARTED"
    assert celery_state(State.RUNNING, "PROGRESS") == "PROGRESS"
    assert celery_state(State.SUCCEEDED, "PROGRESS") == "SUCCESS"


def test_unknown_queued_and_scheduled_are_pending_and_finer_in_taskmqs_words(app: Celery) -> None:
    job = app.task(lambda: None)

    results = [app.AsyncResult("nobody"), job.delay(), job.apply_async(countdown=60)]

    assert [r.state for r in results] == ["PENDING"] * 3
    assert [r.taskmq_state for r in results] == [State.UNKNOWN, State.QUEUED, State.SCHEDULED]
    assert [r.exists() for r in results] == [False, True, True]
    assert results[1].result is None


def test_state_seen_while_it_runs_follows_track_started(
    app: Celery, make_worker: MakeWorker
) -> None:
    seen: list[str] = []
    for tracked in (False, True):
        kept: list[Any] = []

        @app.task(name=f"job-{tracked}", track_started=tracked)
        def job(kept: Any = kept) -> None:
            seen.append(kept[0].state)

        kept.append(job.delay())
    make_worker(app).run_until_idle()

    assert seen == ["PENDING", "STARTED"]


def test_value_of_a_success(app: Celery, make_worker: MakeWorker) -> None:
    result = app.task(name="job")(lambda: {"a": [1, None]}).delay()
    make_worker(app).run_until_idle()

    assert (result.state, result.status) == ("SUCCESS", "SUCCESS")
    assert (result.ready(), result.successful(), result.failed()) == (True, True, False)
    assert result.get() == result.result == result.info == {"a": [1, None]}
    assert (result.name, result.worker, result.retries) == ("job", "test-worker", 0)
    assert result.date_done is not None
    assert result.date_done.timestamp() == pytest.approx(app.engine.clock.now(), abs=1)
    assert result.traceback is None


def test_failure_is_raised_as_its_own_class(app: Celery, make_worker: MakeWorker) -> None:
    @app.task
    def job() -> None:
        raise OwnError("mine", 3)

    result = job.delay()
    make_worker(app).run_until_idle()

    with pytest.raises(OwnError) as caught:
        result.get()
    assert caught.value.args == ("mine", 3)
    assert isinstance(result.get(propagate=False), OwnError)
    assert "OwnError" in result.traceback


def test_failure_of_a_class_that_is_not_at_hand_keeps_its_name_and_text(app: Celery) -> None:
    app.engine.results.put(
        [
            ResultRecord(
                task_id="t",
                state=State.FAILED,
                body=b'{"exc_type":"PaymentRefused","exc_module":"shop.errors","exc_message":["card"]}',
            )
        ]
    )
    error = app.AsyncResult("t").get(propagate=False)

    assert type(error).__name__ == "PaymentRefused"
    assert type(error).__module__ == "shop.errors"
    assert (str(error), error.args) == ("card", ("card",))


@pytest.mark.parametrize(
    ("engine_name", "expected"),
    [("WorkerLost", WorkerLostError), ("TaskRevoked", TaskRevokedError)],
)
def test_ending_by_the_engine_has_celerys_class(
    app: Celery, engine_name: str, expected: type
) -> None:
    body = f'{{"exc_type":"{engine_name}","exc_module":"taskmq.errors","exc_message":["why"]}}'
    app.engine.results.put([ResultRecord(task_id="t", state=State.FAILED, body=body.encode())])

    error = app.AsyncResult("t").result

    assert isinstance(error, expected)
    assert str(error) == "why"


def test_get_waits_its_time_and_no_longer(app: Celery) -> None:
    result = app.task(lambda: None).delay()

    with pytest.raises(exceptions.TimeoutError, match="timed out"):
        result.get(timeout=0)
    with pytest.raises(result.TimeoutError):
        result.get(timeout=0.01)


def test_get_calls_back_with_id_and_value(app: Celery, make_worker: MakeWorker) -> None:
    result = app.task(lambda: 5).delay()
    make_worker(app).run_until_idle()
    seen: list[Any] = []

    result.get(callback=lambda task_id, value: seen.append((task_id, value)))

    assert seen == [(result.id, 5)]


def test_on_interval_is_called_while_it_waits(app: Celery) -> None:
    result = app.task(lambda: None).delay()
    calls: list[int] = []

    with pytest.raises(exceptions.TimeoutError):
        result.get(timeout=0.05, interval=0.01, on_interval=lambda: calls.append(1))

    assert calls


def test_on_message_is_refused(app: Celery) -> None:
    with pytest.raises(ImproperlyConfigured, match="on_message"):
        app.AsyncResult("x").get(on_message=print)


def test_forgotten_result_reads_as_pending_again(app: Celery, make_worker: MakeWorker) -> None:
    result = app.task(lambda: 5).delay()
    make_worker(app).run_until_idle()
    assert result.get() == 5

    result.forget()

    assert (result.state, result.result) == ("PENDING", None)


def test_revoked_task_never_runs(app: Celery, make_worker: MakeWorker) -> None:
    runs: list[int] = []
    result = app.task(lambda: runs.append(1)).delay()

    result.revoke()
    make_worker(app).run_until_idle()

    assert runs == []
    assert result.state == "REVOKED"
    with pytest.raises(TaskRevokedError):
        result.get()


def test_id_that_is_no_text_is_refused() -> None:
    for value in (None, "", 3):
        with pytest.raises(ValueError, match="valid id"):
            AsyncResult(value)  # type: ignore[arg-type]


def test_result_is_equal_to_its_id_and_to_its_copies(app: Celery) -> None:
    app.set_current()
    result = app.AsyncResult("an id")

    assert result == "an id"
    assert result == app.AsyncResult("an id") != app.AsyncResult("other")
    assert hash(result) == hash("an id")
    assert str(result) == "an id"
    assert copy.copy(result) == pickle.loads(pickle.dumps(result)) == result


def test_error_of_a_parent_is_raised_instead_of_the_consequence(
    app: Celery, make_worker: MakeWorker
) -> None:
    boom = app.task(name="boom")(lambda: 1 / 0)
    after = app.task(name="after")(lambda x: x)

    result = (boom.s() | after.s()).delay()
    make_worker(app).run_until_idle()

    with pytest.raises(ZeroDivisionError):
        result.get()
    assert result.state == "FAILURE"
    assert not isinstance(result.get(propagate=False), ZeroDivisionError)


def test_result_comes_back_from_its_tuple(app: Celery) -> None:
    parent = app.AsyncResult("one")
    result = app.AsyncResult("two", parent=parent)
    both = GroupResult("g", [result, app.AsyncResult("three")], app=app)

    back = result_from_tuple(result.as_tuple(), app)
    group = result_from_tuple(both.as_tuple(), app)

    assert (back.id, back.parent.id, result.as_list()) == ("two", "one", ["two", "one"])
    assert [r.id for r in group] == ["two", "three"]


def test_backend_reads_and_writes_by_id(app: Celery) -> None:
    backend = app.backend

    backend.mark_as_done("done", {"x": 1})
    backend.mark_as_failure("failed", KeyError("k"))
    backend.store_result("going", {"at": 1}, "PROGRESS")

    assert backend.get_result("done") == {"x": 1}
    assert repr(backend.get_result("failed")) == "KeyError('k')"
    assert backend.get_state("going") == "PROGRESS"
    assert backend.get_task_meta("done")["status"] == "SUCCESS"
    assert backend.wait_for("done", timeout=1)["result"] == {"x": 1}
    backend.forget("done")
    assert backend.get_state("done") == "PENDING"
    assert app.backend.as_uri().startswith("memory://")


def test_results_may_be_in_a_store_of_their_own(make_app: MakeApp, tmp_path: Any) -> None:
    app = make_app(backend=f"sqlite:///{tmp_path}/results.db")

    app.backend.mark_as_done("done", 1)

    assert app.AsyncResult("done").get(timeout=1) == 1
    assert (tmp_path / "results.db").exists()


def test_states_compare_by_how_far_they_have_come() -> None:
    assert states.state(states.PENDING) < states.state(states.SUCCESS)
    assert states.state("PROGRESS") > states.state(states.STARTED)
    assert states.state(states.FAILURE) <= states.state(states.SUCCESS)
    assert states.precedence("OWN") == states.NONE_PRECEDENCE
    assert {states.SUCCESS, states.FAILURE, states.REVOKED} == states.READY_STATES
    assert issubclass(BackendError, Exception)
