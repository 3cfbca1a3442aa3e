"""`self.retry()` and automatic retries."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest

from taskmq.compat import Celery, Task
from taskmq.compat.exceptions import ImproperlyConfigured, MaxRetriesExceededError, Reject, Retry
from taskmq.compat.utils.time import get_exponential_backoff_interval
from tests.compat.conftest import MakeWorker


def test_retry_runs_again_under_the_same_id_after_the_countdown(
    app: Celery, make_worker: MakeWorker
) -> None:
    runs: list[tuple[str, int, float]] = []

    @app.task(bind=True)
    def job(self: Any) -> str:
        runs.append((self.request.id, self.request.retries, app.engine.clock.now()))
        if self.request.retries < 2:
            raise self.retry(countdown=7)
        return "done"

    worker = make_worker(app)
    result = job.delay()
    worker.advance(30)

    assert [(task_id, n) for task_id, n, _ in runs] == [(result.id, n) for n in range(3)]
    assert [b[2] - a[2] for a, b in pairwise(runs)] == [7, 7]
    assert (result.get(), result.retries) == ("done", 2)


def test_state_between_tries_is_retry_with_the_cause(app: Celery, make_worker: MakeWorker) -> None:
    @app.task(bind=True)
    def job(self: Any) -> None:
        raise self.retry(exc=ValueError("not yet"))

    result = job.delay()
    make_worker(app).run_until_idle()

    assert (result.state, str(result.result)) == ("RETRY", "not yet")
    assert not result.ready()


@pytest.mark.parametrize("kind", ["default", "eta", "zero"])
def test_time_of_the_retry(app: Celery, make_worker: MakeWorker, kind: str) -> None:
    worker = make_worker(app)
    moment = datetime.fromtimestamp(worker.clock.now() + 40, timezone.utc)
    by_kind: dict[str, dict[str, Any]] = {
        "default": {},
        "eta": {"eta": moment},
        "zero": {"countdown": 0},
    }
    options = by_kind[kind]
    waits = {"default": 25, "eta": 40, "zero": 0}[kind]
    runs: list[float] = []

    @app.task(bind=True, default_retry_delay=25)
    def job(self: Any) -> None:
        runs.append(app.engine.clock.now())
        if not self.request.retries:
            raise self.retry(**options)

    job.delay()
    worker.advance(60)

    assert runs[1] - runs[0] == pytest.approx(waits, abs=0.01)


def test_retry_with_other_arguments(app: Celery, make_worker: MakeWorker) -> None:
    @app.task(bind=True)
    def job(self: Any, x: int, y: int = 0) -> Any:
        if not self.request.retries:
            raise self.retry(args=(x + 1,), kwargs={"y": 5}, countdown=0)
        return [x, y]

    result = job.delay(1)
    make_worker(app).advance(1)

    assert result.get() == [2, 5]


def test_retry_on_another_queue_keeps_id_count_and_workflow(
    app: Celery, make_worker: MakeWorker
) -> None:
    noted: list[Any] = []
    note = app.task(name="note")(noted.append)

    @app.task(bind=True)
    def job(self: Any) -> Any:
        if not self.request.retries:
            raise self.retry(queue="slow", countdown=5)
        return [self.request.id, self.request.retries, self.request.delivery_info["routing_key"]]

    worker = make_worker(app, queues=["celery", "slow"])
    result = job.apply_async(link=note.s())
    worker.advance(10)

    assert result.get() == [result.id, 1, "slow"]
    assert noted == [[result.id, 1, "slow"]]


def test_unknown_option_of_retry_fails_the_task_and_names_it(
    app: Celery, make_worker: MakeWorker
) -> None:
    @app.task(bind=True)
    def job(self: Any) -> None:
        raise self.retry(countdwon=5)

    result = job.delay()
    make_worker(app).run_until_idle()

    assert isinstance(result.get(propagate=False), ImproperlyConfigured)
    assert "Did you mean 'countdown'" in str(result.result)


def test_worn_out_retries_raise_the_cause_if_one_was_given(
    app: Celery, make_worker: MakeWorker
) -> None:
    @app.task(bind=True, max_retries=1, default_retry_delay=0)
    def given(self: Any) -> None:
        raise self.retry(exc=ConnectionError("gone"))

    @app.task(bind=True, max_retries=1, default_retry_delay=0)
    def none(self: Any, *args: Any) -> None:
        raise self.retry()

    worker = make_worker(app)
    with_cause, without = given.delay(), none.delay(1)
    worker.advance(5)

    assert isinstance(with_cause.get(propagate=False), ConnectionError)
    assert isinstance(without.get(propagate=False), MaxRetriesExceededError)
    assert none.name in str(without.result)
    assert without.retries == 1


def test_max_retries_none_on_the_task_is_without_end_and_the_calls_wins(
    app: Celery, make_worker: MakeWorker
) -> None:
    @app.task(bind=True, max_retries=None, default_retry_delay=0)
    def job(self: Any, limit: int | None) -> int:
        if self.request.retries < 10:
            raise self.retry(max_retries=limit)
        return int(self.request.retries)

    worker = make_worker(app)
    endless, limited = job.delay(None), job.delay(2)
    worker.advance(5)

    assert endless.get() == 10
    assert isinstance(limited.get(propagate=False), MaxRetriesExceededError)


def test_retry_of_a_direct_call_raises_the_cause(app: Celery) -> None:
    @app.task(bind=True)
    def job(self: Any, exc: Exception | None) -> None:
        raise self.retry(exc=exc)

    with pytest.raises(KeyError, match="mine"):
        job(KeyError("mine"))
    with pytest.raises(Retry):
        job(None)


def test_retry_inside_an_except_block_raises_what_is_handled(app: Celery) -> None:
    @app.task(bind=True)
    def job(self: Any) -> None:
        try:
            raise OSError("handled")
        except OSError:
            self.retry()

    with pytest.raises(OSError, match="handled"):
        job()


def test_retry_that_does_not_throw_happens_when_the_body_returns(
    app: Celery, make_worker: MakeWorker
) -> None:
    after: list[int] = []

    @app.task(bind=True, default_retry_delay=0)
    def job(self: Any) -> str:
        if not self.request.retries:
            answer = self.retry(throw=False)
            assert isinstance(answer, Retry)
        after.append(self.request.retries)
        return "value"

    result = job.delay()
    make_worker(app).advance(1)

    assert after == [0, 1]
    assert result.get() == "value"


def test_retry_raised_by_hand_runs_again_when_it_says(app: Celery, make_worker: MakeWorker) -> None:
    @app.task(bind=True)
    def job(self: Any) -> int:
        if not self.request.retries:
            raise Retry("by hand", when=4)
        return int(self.request.retries)

    worker = make_worker(app)
    result = job.delay()
    worker.advance(3)
    early = result.state
    worker.advance(2)

    assert (early, result.get()) == ("RETRY", 1)


# -- automatic ------------------------------------------------------------------------------------


def test_named_exceptions_retry_by_themselves_and_others_do_not(
    app: Celery, make_worker: MakeWorker
) -> None:
    @app.task(
        bind=True,
        autoretry_for=(LookupError,),
        dont_autoretry_for=(IndexError,),
        retry_kwargs={"max_retries": 2, "countdown": 0},
    )
    def job(self: Any, exc: str) -> None:
        raise {"key": KeyError, "index": IndexError, "value": ValueError}[exc](exc)

    worker = make_worker(app)
    results = {name: job.delay(name) for name in ("key", "index", "value")}
    worker.advance(5)

    assert {name: r.retries for name, r in results.items()} == {"key": 2, "index": 0, "value": 0}
    assert all(r.state == "FAILURE" for r in results.values())


def test_options_of_automatic_retries_may_stand_on_the_class(
    app: Celery, make_worker: MakeWorker
) -> None:
    class Steady(Task):
        autoretry_for = (OSError,)
        retry_kwargs = {"max_retries": 1, "countdown": 0}  # noqa: RUF012 - as Celery users write it

        def run(self) -> None:
            raise OSError("again")

    task = app.register_task(Steady())
    result = task.delay()
    make_worker(app).advance(5)

    assert (result.state, result.retries) == ("FAILURE", 1)


def test_rejecting_and_ignoring_are_no_reason_to_retry(
    app: Celery, make_worker: MakeWorker
) -> None:
    runs: list[int] = []

    @app.task(autoretry_for=(Exception,), retry_kwargs={"countdown": 0})
    def job() -> None:
        runs.append(1)
        raise Reject("no", requeue=False)

    job.delay()
    make_worker(app).advance(5)

    assert runs == [1]


def test_backoff_doubles_from_its_factor_up_to_its_maximum(
    app: Celery, make_worker: MakeWorker
) -> None:
    times: list[float] = []

    @app.task(
        autoretry_for=(OSError,),
        max_retries=5,
        retry_backoff=3,
        retry_backoff_max=20,
        retry_jitter=False,
    )
    def job() -> None:
        times.append(app.engine.clock.now())
        raise OSError

    job.delay()
    make_worker(app).advance(200)

    waits = [b - a for a, b in pairwise(times)]
    assert waits == pytest.approx([3, 6, 12, 20, 20], abs=0.01)


def test_jitter_draws_from_nothing_to_the_whole_wait() -> None:
    draws = {get_exponential_backoff_interval(1, 3, 600, full_jitter=True) for _ in range(500)}

    assert draws == set(range(9))
    assert get_exponential_backoff_interval(1, 10_000, 600) == 600


def test_async_task_retries_by_itself(app: Celery, make_worker: MakeWorker) -> None:
    @app.task(bind=True, autoretry_for=(OSError,), retry_kwargs={"countdown": 0})
    async def job(self: Any) -> int:
        if self.request.retries < 2:
            raise OSError
        return int(self.request.retries)

    result = job.delay()
    make_worker(app).advance(2)

    assert result.get() == 2


def test_retry_keeps_the_expiry(app: Celery, make_worker: MakeWorker) -> None:
    @app.task(bind=True)
    def job(self: Any) -> None:
        raise self.retry(countdown=timedelta(seconds=30).total_seconds())

    result = job.apply_async(expires=10)
    make_worker(app).advance(60)

    assert result.state == "REVOKED"
