"""What becomes of messages in a worker: retried, buried, revoked, expired, redelivered. On each transport."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

import taskmq.testing
from taskmq import AckMode, App, Context, Result, RetryPolicy, State
from taskmq.errors import Ignore, Reject
from taskmq.message import DeadLetter
from taskmq.pools.base import Ending
from tests.integration.worker.conftest import MakeApp
from tests.support.pools import HeldPool


def state(result: Result[Any]) -> State:
    """A call, so that mypy does not take a state for lasting."""
    return result.state


def dead(app: App) -> list[DeadLetter]:
    return app.transport.operators.dead_letters()


def test_a_task_is_retried_with_backoff_and_ends_as_a_dead_letter(make_app: MakeApp) -> None:
    app = make_app()
    at: list[float] = []
    policy = RetryPolicy(max_retries=3, delay=10, jitter=0, on=(OSError,))

    @app.task(retry=policy)
    def work() -> None:
        at.append(app.clock.now())
        raise OSError("down")

    result = work.delay()
    with taskmq.testing.worker(app) as w:
        w.advance(9)
        assert state(result) is State.RETRYING
        w.advance(200)
    assert [round(b - a) for a, b in itertools.pairwise(at)] == [10, 20, 40]
    (letter,) = dead(app)
    assert (letter.reason, letter.error) == ("retries-exhausted", "OSError: down")
    assert state(result) is State.FAILED


def test_an_unknown_task_waits_and_is_buried_with_its_reason(make_app: MakeApp) -> None:
    app = make_app(max_deliveries=3)
    result = app.submit("somewhere.else")
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
        assert state(result) is State.QUEUED
        w.advance(60)
    (letter,) = dead(app)
    assert letter.reason == "unknown-task"
    assert letter.deliveries == 3
    assert "NotRegistered" in letter.error
    assert state(result) is State.FAILED


def test_a_worker_that_knows_the_task_takes_over_from_one_that_does_not(make_app: MakeApp) -> None:
    app = make_app()
    result = app.submit("jobs.new")
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
        app.task(name="jobs.new")(lambda: "deployed")
        w.advance(5)
    assert result.get(timeout=0) == "deployed"


def test_an_unreadable_body_is_buried_with_its_bytes_and_the_others_run(make_app: MakeApp) -> None:
    app = make_app()
    work = app.task(name="jobs.work")(lambda: 1)
    broken = replace(app.message(work), body=b"\x00not json")
    app.publish([broken])
    after = work.delay()
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    (letter,) = dead(app)
    assert (letter.reason, letter.message.body) == ("unreadable", b"\x00not json")
    assert after.get(timeout=0) == 1


def test_a_rejected_message_is_buried_and_a_requeued_one_comes_back(make_app: MakeApp) -> None:
    app = make_app()
    runs: list[int] = []

    @app.task(bind=True)
    def reject(ctx: Context) -> None:
        raise Reject("not ours")

    @app.task(bind=True)
    def requeue(ctx: Context) -> None:
        runs.append(ctx.deliveries)
        if len(runs) < 8:
            raise Reject("not yet", requeue=True)

    rejected, requeued = reject.delay(), requeue.delay()
    with taskmq.testing.worker(app) as w:
        w.advance(60)
    (letter,) = dead(app)
    assert (letter.reason, letter.error) == ("rejected", "not ours")
    assert state(rejected) is State.DEAD
    # More often than max_deliveries: putting it back is the task's own will and no crash.
    assert runs == [1] * 8
    assert state(requeued) is State.SUCCEEDED


def test_an_ignored_result_stays_as_it_is(make_app: MakeApp) -> None:
    app = make_app()

    @app.task
    def work() -> None:
        raise Ignore

    result = work.delay()
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert result.record() is None
    assert dead(app) == []


def test_crashes_are_redelivered_until_max_deliveries_and_others_flow(make_app: MakeApp) -> None:
    app = make_app(max_deliveries=3)
    work = app.task(name="jobs.work")(lambda: None)
    poison = work.apply_async(priority=9)
    good = [work.delay() for _ in range(5)]
    pool = HeldPool(1)
    deliveries = []
    with taskmq.testing.worker(app, pool=pool) as w:
        for _ in range(40):
            w.step()
            for task_id in pool.running():
                if task_id == poison.id:
                    deliveries.append(pool.job(task_id).deliveries)
                    pool.end(task_id, Ending.LOST)
                else:
                    pool.end(task_id)
            w.clock.advance(0.1)
    assert deliveries == [1, 2, 3]
    assert [(d.reason, d.deliveries) for d in dead(app)] == [("crash-loop", 3)]
    assert state(poison) is State.DEAD
    assert all(result.state is State.SUCCEEDED for result in good)


def test_acknowledged_on_start_a_lost_child_is_a_failure_that_can_be_replayed(
    make_app: MakeApp,
) -> None:
    app = make_app()
    work = app.task(name="jobs.work", ack=AckMode.ON_START)(lambda: None)
    result = work.delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        pool.end(result.id, Ending.LOST)
        w.run_until_idle()
        (letter,) = dead(app)
        assert letter.reason == "worker-lost"
        assert state(result) is State.FAILED
        app.transport.operators.replay([letter.number])
        w.step()
        pool.end(result.id)
        w.step()
    assert state(result) is State.SUCCEEDED


def test_a_revoked_message_never_starts_and_a_prefetched_one_neither(make_app: MakeApp) -> None:
    app = make_app()
    work = app.task(name="jobs.work")(lambda: None)
    pool = HeldPool(1)
    running, held, queued = (work.delay() for _ in range(3))
    with taskmq.testing.worker(app, concurrency=1, prefetch=2, pool=pool) as w:
        w.step()
        assert w.coordinator.held.unstarted == 1
        held.revoke()
        queued.revoke()
        pool.end(running.id)
        w.run_until_idle()
        assert pool.running() == []
        assert w.coordinator.held.unstarted == 0
    assert pool.dispatched == [running.id]
    assert (held.state, queued.state) == (State.REVOKED, State.REVOKED)


def test_a_running_task_that_is_revoked_stops_when_it_asks(make_app: MakeApp) -> None:
    app = make_app()
    went_on = []

    @app.task(bind=True)
    def work(ctx: Context) -> None:
        app.result(ctx.task_id).revoke()
        ctx.check_cancelled()
        went_on.append(1)

    result = work.delay()
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert state(result) is State.REVOKED
    assert went_on == []


def test_what_expires_before_it_starts_ends_as_expired_also_when_prefetched(
    make_app: MakeApp,
) -> None:
    app = make_app()
    work = app.task(name="jobs.work")(lambda: None)
    pool = HeldPool(1)
    running = work.delay()
    late = [work.apply_async(expires=10) for _ in range(2)]
    with taskmq.testing.worker(app, concurrency=1, prefetch=2, pool=pool) as w:
        w.step()
        w.clock.advance(11)
        pool.end(running.id)
        for _ in range(10):
            w.step()
            w.clock.advance(1)
    assert [result.state for result in late] == [State.EXPIRED, State.EXPIRED]
    assert dead(app) == []


def test_an_eta_is_met_and_never_early(make_app: MakeApp) -> None:
    app = make_app()
    at: list[float] = []
    work = app.task(name="jobs.work")(lambda: at.append(app.clock.now()))
    began = app.clock.now()
    work.apply_async(countdown=30)
    with taskmq.testing.worker(app) as w:
        w.advance(29.9)
        assert at == []
        w.advance(1)
    assert 30 <= at[0] - began < 30.1


def test_a_rate_limit_spreads_starts_and_lets_other_tasks_pass(make_app: MakeApp) -> None:
    app = make_app()
    at: list[float] = []
    other: list[float] = []
    began = app.clock.now()
    limited = app.task(name="jobs.limited", rate_limit="1/s")(
        lambda: at.append(app.clock.now() - began)
    )
    free = app.task(name="jobs.free")(lambda: other.append(app.clock.now() - began))
    for _ in range(5):
        limited.apply_async(priority=9)
    free.delay()
    with taskmq.testing.worker(app, concurrency=2) as w:
        w.run_until_idle()
        assert len(other) == 1
        w.advance(10)
    assert [round(t, 2) for t in at] == [0, 1, 2, 3, 4]


def test_a_concurrency_key_runs_one_at_a_time_and_the_slots_go_to_others(
    make_app: MakeApp,
) -> None:
    app = make_app()
    keyed = app.task(name="jobs.keyed", concurrency_key="one")(lambda: None)
    plain = app.task(name="jobs.plain")(lambda: None)
    mine = [keyed.delay().id for _ in range(3)]
    others = [plain.delay().id for _ in range(2)]
    pool = HeldPool(3)
    with taskmq.testing.worker(app, concurrency=3, pool=pool) as w:
        w.step()
        w.step()
        assert set(pool.running()) == {mine[0], *others}
        pool.end(mine[0])
        w.step()
        w.step()
        assert mine[1] in pool.running()
        assert mine[2] not in pool.running()


def test_progress_is_seen_while_the_task_runs(make_app: MakeApp) -> None:
    app = make_app()
    work = app.task(name="jobs.work")(lambda: None)
    result = work.delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        pool.end(result.id, Ending.PROGRESS, b'{"done":3}')
        w.step()
        assert (result.state, result.progress) == (State.RUNNING, {"done": 3})
        pool.end(result.id, body=b"9")
        w.step()
    assert result.get(timeout=0) == 9


def test_callbacks_run_with_the_value_of_their_task(make_app: MakeApp) -> None:
    app = make_app()
    add = app.task(name="jobs.add")(lambda a, b: a + b)
    double = app.task(name="jobs.double")(lambda a: a * 2)
    seen: list[int] = []
    note = app.task(name="jobs.note")(lambda value: seen.append(value))
    add.apply_async((1, 2), link=[double.s(), note.s()])
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert seen == [3]


@pytest.mark.parametrize(
    "follow", ["no json", "[1]", '{"chain": 5, "callbacks": "x", "chord": {"size": "many"}}']
)
def test_what_follows_may_be_garbage_and_the_task_s_own_end_stands(
    make_app: MakeApp, follow: str
) -> None:
    app = make_app()
    work = app.task(name="jobs.work")(lambda: 5)
    message = replace(app.message(work), follow=follow)
    app.publish([message])
    after = work.delay()
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert app.result(message.task_id).get(timeout=0) == 5
    assert after.get(timeout=0) == 5
