"""The seed's §9 through apps and the real coordinator: whole worker loops, on every transport.

Numbered as there. The transport's share of the same list is in tests/conformance, item 11 with the command
line; `test_every_item_of_the_seeds_list_has_a_named_test` sees that none is missing.
"""

from __future__ import annotations

from typing import Any

import pytest

import taskmq.testing
from taskmq import Priority, QueueConfig, RetryPolicy
from taskmq.context import Context
from taskmq.errors import ConfigError, PriorityError
from taskmq.states import State
from tests.integration.worker.conftest import MakeApp
from tests.support.pools import HeldPool


@pytest.mark.parametrize("wrong", [10, -10, 5.0, "5", True, None])
def test_02_a_priority_out_of_range_or_no_int_is_an_error_where_it_is_declared(
    make_app: MakeApp, wrong: Any
) -> None:
    with pytest.raises(ConfigError, match="priority"):
        make_app(default_priority=wrong)
    if wrong is None:
        return  # in a queue, a task or a call None is "not set"
    with pytest.raises(ConfigError, match="priority"):
        make_app(queues={"email": QueueConfig(priority=wrong)})
    app = make_app()
    with pytest.raises(ConfigError, match="priority"):
        app.task(name="jobs.wrong", priority=wrong)(lambda: None)
    work = app.task(name="jobs.work")(lambda: None)
    with pytest.raises(PriorityError, match="priority"):
        work.apply_async(priority=wrong)
    assert app.transport.operators.depth() == []


def test_03_the_call_beats_the_task_beats_the_queue_beats_the_config(make_app: MakeApp) -> None:
    app = make_app(default_priority=1, queues={"ranked": QueueConfig(priority=2)})
    seen: list[int] = []

    @app.task(bind=True, name="jobs.plain")
    def plain(ctx: Context) -> None:
        seen.append(ctx.priority)

    @app.task(bind=True, name="jobs.own", priority=3, queue="ranked")
    def own(ctx: Context) -> None:
        seen.append(ctx.priority)

    with taskmq.testing.worker(app, queues=["default", "ranked"]) as w:
        for submit in (
            lambda: own.apply_async(priority=4),
            own.delay,
            lambda: plain.apply_async(queue="ranked"),
            plain.delay,
        ):
            submit()
            w.run_until_idle()

    assert seen == [4, 3, 2, 1]


def test_04_g1_after_a_thousand_p0_the_next_free_slot_runs_the_p9(make_app: MakeApp) -> None:
    app = make_app()
    ran: list[int] = []

    @app.task
    def work(number: int) -> None:
        ran.append(number)

    app.submit_many([(work, (n,)) for n in range(1000)])
    with taskmq.testing.worker(app) as w:
        w.step()
        w.step()
        before = len(ran)
        work.apply_async((9_000,), priority=9)
        w.run_until_idle()
    assert ran[before : before + 2].index(9_000) <= 1  # one P0 had its slot already
    assert sorted(ran) == [*range(1000), 9_000]


def test_05_g2_unstarted_p0_make_room_for_one_p9_and_run_afterwards(make_app: MakeApp) -> None:
    app = make_app(yield_delay=0.1)

    @app.task
    def work() -> None: ...

    pool = HeldPool(1, blocked=True)
    low = [work.apply_async(priority=0).id for _ in range(8)]
    with taskmq.testing.worker(app, concurrency=1, prefetch=8, pool=pool) as w:
        w.run_until_idle()
        assert w.coordinator.held.unstarted == 8

        urgent = work.apply_async(priority=9).id
        w.run_until_idle()
        assert w.coordinator.reporter.counts["yielded"] == 1
        assert w.coordinator.held.unstarted == 8

        pool.blocked = False
        w.step()
        assert pool.running() == [urgent]

        finished = []
        while pool.running():
            finished += pool.running()
            pool.end_all()
            w.step()
            w.clock.advance(0.2)
            w.step()
        assert finished == [urgent, *low]
        assert w.coordinator.reporter.counts["yielded"] == 1
    assert [app.result(task_id).state for task_id in low] == [State.SUCCEEDED] * 8


def test_06_g3_a_running_p0_is_not_interrupted_and_the_p9_gets_the_next_slot(
    make_app: MakeApp,
) -> None:
    app = make_app()

    @app.task
    def work() -> None: ...

    pool = HeldPool(1)
    running, later = work.delay().id, work.delay().id
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        urgent = work.apply_async(priority=9).id
        for _ in range(5):
            w.step()
            w.clock.advance(1)
        assert pool.running() == [running]
        assert pool.cancelled == {}
        pool.end(running)
        w.step()
        assert pool.running() == [urgent]
        pool.end(urgent)
        w.step()
        assert pool.running() == [later]


def test_07_yields_are_counted_apart_and_end_at_max_yields(make_app: MakeApp) -> None:
    app = make_app(max_yields=3, max_deliveries=2, yield_delay=0.1)

    @app.task
    def work() -> None: ...

    pool = HeldPool(1, blocked=True)
    low = work.apply_async(priority=0)
    with taskmq.testing.worker(app, concurrency=1, prefetch=1, pool=pool) as w:
        for _ in range(6):
            w.run_until_idle()
            work.apply_async(priority=9)
            w.run_until_idle()
            pool.blocked = False
            w.step()
            pool.end_all()
            pool.blocked = True
            w.step()
            w.clock.advance(0.3)
        assert w.coordinator.reporter.counts["yielded"] == 3
        pool.blocked = False
        for _ in range(30):
            w.step()
            pool.end_all()
            w.clock.advance(0.3)
    assert low.state is State.SUCCEEDED
    assert app.transport.operators.dead_letters() == []


def test_08_queues_of_one_band_share_a_worker_by_weight(make_app: MakeApp) -> None:
    app = make_app(queues={"a": QueueConfig(weight=3), "b": QueueConfig(weight=1)})
    ran: list[str] = []

    @app.task
    def work(queue: str) -> None:
        ran.append(queue)

    for queue in ("a", "b"):
        app.submit_many([(work, (queue,), None, {"queue": queue})] * 100)
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert ran[:40].count("a") == 30
    assert len(ran) == 200


def test_09_a_retry_keeps_its_priority_and_lower_goes_one_level_down(make_app: MakeApp) -> None:
    app = make_app()
    seen: dict[str, list[int]] = {"keep": [], "lower": []}
    policy = RetryPolicy(max_retries=2, delay=1, on=(ValueError,))

    def fail(ctx: Context, kind: str) -> None:
        seen[kind].append(ctx.priority)
        raise ValueError(kind)

    keep = app.task(bind=True, name="keep", retry=policy)(fail)
    lower = app.task(bind=True, name="lower", retry=policy, retry_priority="lower")(
        lambda ctx, kind: fail(ctx, kind)
    )
    keep.apply_async(("keep",), priority=5)
    lower.apply_async(("lower",), priority=-8)
    with taskmq.testing.worker(app) as w:
        w.advance(60)
    assert seen == {"keep": [5, 5, 5], "lower": [-8, -9, -9]}


def test_09_a_child_inherits_its_parent_s_priority_unless_one_is_given(make_app: MakeApp) -> None:
    app = make_app()
    seen: list[tuple[str, int]] = []

    @app.task(bind=True, priority=Priority.LOW)
    def child(ctx: Context, name: str) -> None:
        seen.append((name, ctx.priority))

    @app.task(bind=True)
    def parent(ctx: Context) -> None:
        ctx.publish(child, ("inherited",))
        ctx.publish(child, ("given",), priority=2)

    parent.apply_async(priority=7)
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert seen == [("inherited", 7), ("given", 2)]


def test_09_a_replayed_dead_letter_keeps_its_priority(make_app: MakeApp) -> None:
    app = make_app()
    seen: list[int] = []

    @app.task(bind=True)
    def work(ctx: Context) -> None:
        seen.append(ctx.priority)
        if len(seen) == 1:
            raise ValueError("the first time")

    result = work.apply_async(priority=6)
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
        (letter,) = app.transport.operators.dead_letters()
        assert (letter.reason, letter.message.task_id) == ("failed", result.id)
        app.transport.operators.replay([letter.number])
        w.run_until_idle()
    assert seen == [6, 6]
    assert result.state is State.SUCCEEDED


def test_12_with_normal_reserved_slots_a_p0_gets_through_a_flood_of_p9(make_app: MakeApp) -> None:
    app = make_app(normal_reserved_slots=1)

    @app.task
    def work() -> None: ...

    pool = HeldPool(3)
    urgent = {work.apply_async(priority=9).id for _ in range(10)}
    normal = work.apply_async(priority=0).id
    with taskmq.testing.worker(app, concurrency=3, pool=pool) as w:
        w.step()
        running = pool.running()
    assert normal in running
    assert len(urgent.intersection(running)) == 2


def test_12_with_aging_a_low_message_is_reached_in_bounded_time(make_app: MakeApp) -> None:
    app = make_app(aging_interval=10.0, aging_cap=9)

    @app.task
    def work() -> None: ...

    pool = HeldPool(1)
    low = work.apply_async(priority=0).id
    with taskmq.testing.worker(app, pool=pool) as w:
        ticks = 0
        while low not in pool.running():
            # One urgent message per interval: as many as the slot can run.
            work.apply_async(priority=5)
            pool.end_all()
            w.step()
            w.clock.advance(10)
            ticks += 1
            assert ticks < 20
    assert ticks == 6  # after 50 s it has risen to 5, and it is the oldest there
