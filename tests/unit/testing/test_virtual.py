"""The virtual worker: runs only when told to, time moves only in `advance`, and every run is the same."""

from __future__ import annotations

import pytest

import taskmq.testing
from taskmq import App, Context, RetryPolicy, State
from taskmq.clock import SystemClock
from taskmq.errors import ConfigError


def test_nothing_runs_before_it_is_told_to() -> None:
    app = taskmq.testing.app()
    ran: list[int] = []
    task = app.task(name="jobs.note")(ran.append)
    with taskmq.testing.worker(app) as w:
        task.delay(1)
        assert ran == []
        assert w.run_until_idle() > 0
        assert ran == [1]
        assert w.run_until_idle() == 0


def test_what_a_task_submits_runs_too() -> None:
    app = taskmq.testing.app()
    ran: list[int] = []

    @app.task(bind=True, name="jobs.down")
    def down(ctx: Context, n: int) -> None:
        ran.append(n)
        if n:
            ctx.publish(down, (n - 1,))

    down.delay(3)
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert ran == [3, 2, 1, 0]


def test_advance_runs_each_thing_at_its_own_time() -> None:
    app = taskmq.testing.app()
    began = app.clock.now()
    at: list[tuple[str, int]] = []
    task = app.task(name="jobs.note")(
        lambda name: at.append((name, round(app.clock.now() - began)))
    )
    for name, seconds in (("c", 90), ("a", 10), ("b", 50)):
        task.apply_async((name,), countdown=seconds)
    with taskmq.testing.worker(app) as w:
        w.advance(60)
        assert at == [("a", 10), ("b", 50)]
        assert app.clock.now() - began == pytest.approx(60)
        w.advance(60)
    assert at[-1] == ("c", 90)


def test_a_task_that_never_lets_the_worker_rest_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    app = taskmq.testing.app()
    monkeypatch.setattr("taskmq.testing.virtual._MOST_STEPS", 50)

    @app.task(bind=True, name="jobs.for_ever")
    def for_ever(ctx: Context) -> None:
        ctx.publish(for_ever)

    for_ever.delay()
    with taskmq.testing.worker(app) as w, pytest.raises(AssertionError, match="submit itself"):
        w.run_until_idle()


def test_advance_does_not_hang_on_what_is_due_and_cannot_start() -> None:
    app = taskmq.testing.app()
    task = app.task(name="jobs.work")(lambda: None)
    result = task.apply_async(countdown=5)
    app.transport.operators.pause("default")
    with taskmq.testing.worker(app) as w:
        w.advance(60)
        assert result.state is State.QUEUED
        app.transport.operators.resume("default")
        w.run_until_idle()
    assert result.get(timeout=0) is None


def test_two_runs_with_one_seed_are_the_same() -> None:
    def run(seed: int) -> list[float]:
        app = taskmq.testing.app(seed=seed)
        at: list[float] = []
        policy = RetryPolicy(max_retries=4, on=(ValueError,))

        @app.task(name="jobs.fail", retry=policy)
        def fail() -> None:
            at.append(app.clock.now())
            raise ValueError

        fail.delay()
        with taskmq.testing.worker(app) as w:
            w.advance(600)
        return at

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_real_clock_is_refused() -> None:
    app = App(broker_url="memory://", clock=SystemClock())
    with (
        pytest.raises(ConfigError, match=r"taskmq\.testing\.isolated"),
        taskmq.testing.worker(app),
    ):
        raise AssertionError("not reached")
