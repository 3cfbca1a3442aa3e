"""Commands are answered, events are written only when they are on, starvation is said."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

import taskmq.testing
from taskmq import App, Context
from taskmq import events as kinds
from taskmq.errors import TaskRevoked
from taskmq.pools.base import Ending
from taskmq.testing import VirtualWorker
from taskmq.worker.stopping import Stage
from tests.integration.worker.conftest import MakeApp
from tests.support.pools import HeldPool


def ask(w: VirtualWorker, command: str, **arguments: Any) -> Mapping[str, Any]:
    """Send a command and let the worker answer it."""
    coordination = w.app.transport.coordination
    assert coordination.send(command, arguments, to=["test-worker"], reply_to="r") == [
        "test-worker"
    ]
    w.clock.advance(0.3)
    w.step()
    ((name, reply),) = coordination.replies("r")
    assert name == "test-worker"
    return reply


def work_of(app: App) -> Any:
    return app.task(name="jobs.work")(lambda: None)


def test_ping_is_answered(make_app: MakeApp) -> None:
    with taskmq.testing.worker(make_app()) as w:
        assert ask(w, "ping") == {"ok": "pong"}


def test_commands_are_neither_read_nor_answered_where_they_are_turned_off(
    make_app: MakeApp,
) -> None:
    app = make_app(remote_control=False)
    coordination = app.transport.coordination
    with taskmq.testing.worker(app) as w:
        coordination.send("shutdown", {}, reply_to="r")
        w.advance(5)

        assert w.coordinator.stage is Stage.RUNNING
        assert coordination.replies("r") == []
        assert [command.name for command in coordination.commands("test-worker")] == ["shutdown"]
        assert [worker.details["control"] for worker in coordination.workers()] == [False]


def test_active_names_what_runs_and_never_its_arguments(make_app: MakeApp) -> None:
    app = make_app()
    work = app.task(name="jobs.work")(lambda text: None)
    result = work.apply_async(("canary",), priority=4)
    with taskmq.testing.worker(app, pool=HeldPool(1)) as w:
        w.step()
        reply = ask(w, "active")
    (task,) = reply["ok"]
    assert (task["task_id"], task["task"], task["priority"]) == (result.id, "jobs.work", 4)
    assert "canary" not in str(reply)


def test_stats_count_what_happened(make_app: MakeApp) -> None:
    app = make_app()
    work_of(app).delay()
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
        stats = ask(w, "stats")["ok"]
    assert (stats["counts"], stats["running"], stats["state"]) == ({"succeeded": 1}, 0, "running")


def test_an_unknown_command_is_told_the_likely_one(make_app: MakeApp) -> None:
    with taskmq.testing.worker(make_app()) as w:
        assert "Did you mean 'ping'" in ask(w, "pong")["error"]


@pytest.mark.parametrize("task_ids", [None, "abc", [1]])
def test_a_command_with_wrong_arguments_is_refused_and_the_worker_goes_on(
    make_app: MakeApp, task_ids: Any
) -> None:
    with taskmq.testing.worker(make_app()) as w:
        assert "task_ids" in ask(w, "revoke", task_ids=task_ids)["error"]
        assert ask(w, "ping") == {"ok": "pong"}


def test_revoke_reaches_running_tasks_and_terminates_them_when_told(make_app: MakeApp) -> None:
    app = make_app()
    work = work_of(app)
    asked, ended = work.delay(), work.delay()
    pool = HeldPool(2)
    with taskmq.testing.worker(app, concurrency=2, pool=pool) as w:
        w.step()
        number = pool.job(asked.id).number
        assert ask(w, "revoke", task_ids=[asked.id, "unknown"]) == {
            "ok": {asked.id: "asked to stop"}
        }
        assert pool.cancelled == {number: "it was revoked"}
        assert ask(w, "revoke", task_ids=[ended.id], terminate=True, reason="too slow") == {
            "ok": {ended.id: "terminated"}
        }
        w.step()
    assert ended.state.value == "revoked"
    with pytest.raises(TaskRevoked, match="too slow"):
        ended.get(timeout=0)


def test_a_stopping_worker_says_so_at_once(make_app: MakeApp) -> None:
    app = make_app()
    work_of(app).delay()
    with taskmq.testing.worker(app, pool=HeldPool(1)) as w:
        w.step()
        w.coordinator.stop("test")
        w.step()

        assert [i.state for i in app.transport.coordination.workers()] == ["draining"]


def test_shutdown_drains_and_commands_are_answered_meanwhile(make_app: MakeApp) -> None:
    app = make_app()
    result = work_of(app).delay()
    pool = HeldPool(1)
    with taskmq.testing.worker(app, pool=pool) as w:
        w.step()
        assert ask(w, "shutdown") == {"ok": "draining"}
        w.step()
        assert w.coordinator.stats()["state"] == "draining"
        assert ask(w, "ping") == {"ok": "pong"}
        pool.end(result.id)
        for _ in range(3):
            w.step()
        assert w.coordinator.stage is Stage.STOPPED


def test_events_tell_a_task_s_life(make_app: MakeApp) -> None:
    app = make_app()
    policy = taskmq.RetryPolicy(max_retries=1, delay=1, on=(ValueError,))

    @app.task(bind=True, name="jobs.work", retry=policy)
    def work(ctx: Context, how: str) -> None:
        ctx.progress(1, "half")
        if how == "fail":
            raise ValueError("boom")

    good, bad = work.delay("work"), work.delay("fail")
    with taskmq.testing.worker(app, events=True) as w:
        w.advance(5)
    events = app.transport.coordination.events()

    def of(task_id: str) -> list[str]:
        return [e.kind for e in events if e.fields.get("task_id") == task_id]

    assert of(good.id) == ["task.received", "task.started", "task.progress", "task.succeeded"]
    again = ["task.received", "task.started", "task.progress"]
    assert of(bad.id) == [*again, "task.retried", *again, "task.failed", "task.dead"]
    names = [e.kind for e in events]
    assert names[0] == "worker.online"
    assert names[-1] == "worker.offline"
    assert set(names) <= set(kinds.KINDS)
    assert all(e.fields["worker"] == "test-worker" for e in events)
    (failed,) = (e for e in events if e.kind == "task.failed")
    assert failed.fields["reason"] == "retries-exhausted"
    assert failed.fields["error"] == "ValueError: boom"


def test_without_events_nothing_is_written(make_app: MakeApp) -> None:
    app = make_app()
    work_of(app).delay()
    with taskmq.testing.worker(app) as w:
        w.advance(60)
    assert app.transport.coordination.last_event() == 0


def test_yields_and_releases_are_events(make_app: MakeApp) -> None:
    app = make_app()
    work = work_of(app)
    low = work.delay()
    pool = HeldPool(1, blocked=True)
    with taskmq.testing.worker(app, concurrency=1, prefetch=1, pool=pool, events=True) as w:
        w.run_until_idle()
        high = work.apply_async(priority=3)
        w.run_until_idle()
        pool.blocked = False
        w.step()
        pool.end(high.id, Ending.LOST)
        w.step()
    events = app.transport.coordination.events()
    (yielded,) = (e for e in events if e.kind == "task.yielded")
    assert (yielded.fields["task_id"], yielded.fields["for_priority"]) == (low.id, 3)
    (released,) = (e for e in events if e.kind == "task.released")
    assert released.fields["task_id"] == high.id


def test_depth_is_sampled_by_one_worker_and_starvation_is_said_once(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    app = make_app(depth_interval=10.0, starvation_after=60.0)
    work = work_of(app)
    work.apply_async(priority=-3, queue="bulk")
    for _ in range(2):
        work.apply_async(priority=5, queue="bulk")
    with (
        taskmq.testing.worker(app, queues=["other"], events=True, name="a") as a,
        taskmq.testing.worker(app, queues=["other"], events=True, name="b") as b,
    ):
        for _ in range(12):
            a.step()
            b.step()
            a.clock.advance(10)
    events = app.transport.coordination.events()
    depths = [e for e in events if e.kind == "queue.depth" and e.fields["queue"] == "bulk"]
    assert 10 <= len(depths) <= 13
    assert len({e.fields["worker"] for e in depths}) == 1
    last = depths[-1].fields["bands"]
    assert [(band["priority"], band["ready"]) for band in last] == [(5, 2), (-3, 1)]
    assert 90 <= last[1]["oldest_age"] <= 120
    starving = [e for e in events if e.kind == "queue.starving"]
    assert {(e.fields["queue"], e.fields["priority"]) for e in starving} == {
        ("bulk", 5),
        ("bulk", -3),
    }
    assert sum("starves at priority -3" in r.getMessage() for r in caplog.records) == 1


def test_the_duty_passes_on_when_its_holder_is_gone(make_app: MakeApp) -> None:
    app = make_app(lease=30.0, poll_interval=0.05)
    result = work_of(app).delay()
    gone, left = HeldPool(1), HeldPool(1)
    with (
        taskmq.testing.worker(app, pool=gone, name="a") as a,
        taskmq.testing.worker(app, pool=left, queues=["default"], name="b") as b,
    ):
        a.step()
        # a holds the duty and the task and is never heard of again.
        waited = 0
        while left.running() != [result.id]:
            b.clock.advance(1)
            b.step()
            waited += 1
            assert waited < 75
        assert waited > 30
