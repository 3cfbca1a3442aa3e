"""Priorities in a Celery project: one direction, one order of resolution, no clamp (P1, P5, P6)."""

from __future__ import annotations

from typing import Any

import pytest

from taskmq.compat import Celery, chain, chord, group
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.errors import ConfigError, PriorityError
from tests.compat.conftest import MakeApp, MakeWorker


def told(app: Celery, worker: Any, result: Any) -> Any:
    """The priority a task saw in its request."""
    worker.run_until_idle()
    return result.get()


@pytest.fixture
def level(app: Celery) -> Any:
    return declare_level(app)


def declare_level(app: Celery, **options: Any) -> Any:
    """A task that tells the priority it was delivered with."""

    @app.task(bind=True, name="level", **options)
    def level(self: Any, *_: Any) -> Any:
        return self.request.delivery_info["priority"]

    return level


@pytest.mark.parametrize("priority", range(-9, 10))
def test_every_level_is_delivered_as_it_was_given(
    app: Celery, level: Any, make_worker: MakeWorker, priority: int
) -> None:
    result = level.apply_async(priority=priority)

    assert told(app, make_worker(app), result) == priority


def test_larger_is_more_urgent(app: Celery, make_worker: MakeWorker) -> None:
    order: list[int] = []

    @app.task
    def note(priority: int) -> None:
        order.append(priority)

    levels = [0, 9, -9, 3, 1, 2, -1]
    for priority in levels:
        note.apply_async((priority,), priority=priority)
    make_worker(app).run_until_idle()

    assert order == sorted(levels, reverse=True)


@pytest.mark.parametrize("priority", [10, -10, 100, 2.0, "9", True])
def test_priority_out_of_range_is_refused_at_the_call(
    app: Celery, level: Any, priority: Any
) -> None:
    with pytest.raises(PriorityError, match="priority"):
        level.apply_async(priority=priority)
    with pytest.raises(ValueError, match="priority"):
        app.send_task("elsewhere", priority=priority)
    assert app.engine.transport.operators.queues() == []


def test_call_beats_task_beats_default(make_app: MakeApp, make_worker: MakeWorker) -> None:
    app = make_app(task_default_priority=1)
    plain, own = declare_level(app), app.task(name="own", bind=True, priority=4)(_level)
    worker = make_worker(app)

    assert told(app, worker, plain.delay()) == 1
    assert told(app, worker, own.delay()) == 4
    assert told(app, worker, own.apply_async(priority=7)) == 7
    assert told(app, worker, own.apply_async(priority=None)) == 4


def _level(self: Any, *_: Any) -> Any:
    return self.request.delivery_info["priority"]


def test_priority_of_a_route_is_below_the_tasks_own(
    make_app: MakeApp, make_worker: MakeWorker
) -> None:
    app = make_app(task_routes={"*": {"queue": "celery", "priority": 2}})
    plain, own = declare_level(app), app.task(name="own", bind=True, priority=4)(_level)
    worker = make_worker(app)

    assert told(app, worker, plain.delay()) == 2
    assert told(app, worker, own.delay()) == 4


def test_child_inherits_only_under_the_setting_which_then_beats_the_decorator(
    make_app: MakeApp, make_worker: MakeWorker
) -> None:
    for inherits, expected in ((False, 4), (True, 7)):
        app = make_app(task_inherit_parent_priority=inherits, task_default_priority=1)
        own = app.task(name="own", bind=True, priority=4)(_level)
        children: list[Any] = []
        parent = app.task(name="parent")(lambda own=own, kept=children: kept.append(own.delay()))
        worker = make_worker(app)

        parent.apply_async(priority=7)
        worker.run_until_idle()

        assert children[0].get() == expected


def test_priority_of_the_call_beats_the_inherited_one(
    make_app: MakeApp, make_worker: MakeWorker
) -> None:
    app = make_app(task_inherit_parent_priority=True)
    own = app.task(name="own", bind=True)(_level)
    children: list[Any] = []
    parent = app.task(name="parent")(lambda: children.append(own.apply_async(priority=-3)))
    parent.apply_async(priority=7)
    make_worker(app).run_until_idle()

    assert children[0].get() == -3


def test_retry_keeps_its_priority_unless_one_is_given(app: Celery, make_worker: MakeWorker) -> None:
    @app.task(bind=True, default_retry_delay=0)
    def job(self: Any, given: int | None) -> Any:
        if not self.request.retries:
            raise self.retry(priority=given)
        return self.request.delivery_info["priority"]

    worker = make_worker(app)
    kept = job.apply_async((None,), priority=6)
    given = job.apply_async((-2,), priority=6)
    worker.advance(1)

    assert (kept.get(), given.get()) == (6, -2)


def test_priority_of_a_workflow_holds_for_every_step_and_a_steps_own_wins(
    app: Celery, make_worker: MakeWorker
) -> None:
    declare_level(app)
    own = app.task(name="own", bind=True, priority=5)(_level)
    every = app.task(name="every", bind=True)(lambda self, *a: [*flat(a), _level(self)])
    worker = make_worker(app)

    result = chain(every.s(), every.s(), every.s().set(priority=8)).apply_async(priority=3)
    assert told(app, worker, result) == [3, 3, 8]
    assert told(app, worker, group(own.s(), own.s()).apply_async(priority=3)) == [3, 3]
    body = every.s().set(priority=7)
    assert told(app, worker, chord([own.s(), own.s()], body).apply_async(priority=3)) == [3, 3, 7]


def flat(args: Any) -> list[Any]:
    """The one list among the arguments, or nothing."""
    return list(args[0]) if args else []


# -- the other direction --------------------------------------------------------------------------


def test_numbers_written_for_celery_on_redis_are_negated(
    make_app: MakeApp, make_worker: MakeWorker
) -> None:
    app = make_app(task_priority_scale="celery-redis", task_default_priority=6)
    order: list[Any] = []

    @app.task(bind=True)
    def note(self: Any) -> None:
        order.append(self.request.delivery_info["priority"])

    for priority in (3, 9, 0, None):
        note.apply_async(priority=priority)
    make_worker(app).run_until_idle()

    assert order == [0, 3, 6, 9]


def test_that_scale_is_0_to_9(make_app: MakeApp) -> None:
    app = make_app(task_priority_scale="celery-redis")
    level = declare_level(app)

    for priority in (-1, 10):
        with pytest.raises(PriorityError, match=r"0\.\.9"):
            level.apply_async(priority=priority)
    with pytest.raises(ConfigError, match=r"0\.\.9"):
        app.task(name="below", priority=-1)(_level)


def test_unknown_scale_is_named(make_app: MakeApp) -> None:
    app = make_app(task_priority_scale="celery-reddis")

    with pytest.raises(ImproperlyConfigured, match="Did you mean 'celery-redis'"):
        _ = app.engine
