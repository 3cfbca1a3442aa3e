"""Soft limits that hit tasks inside the store: the queue goes on for everybody."""

from __future__ import annotations

import pytest

from taskmq import App
from taskmq.states import State
from tests.support.processes import Processes, processes
from tests.support.waiting import wait_until

# Not the loop as the first thing in the `try`: what CPython 3.11 raises at its jump back is not caught then.
PROJECT = """
import pathlib
from taskmq import App
from taskmq.errors import SoftTimeLimitExceeded

app = App(broker_url=f"sqlite:///{pathlib.Path(__file__).parent / 'q.db'}")


@app.task(bind=True, soft_time_limit=0.05)
def publish(ctx):
    try:
        rounds = 0
        while True:
            rounds += 1
            ctx.publish("flood.nothing", queue="other")
    except SoftTimeLimitExceeded:
        return "limit"


@app.task(soft_time_limit=0.05)
def look():
    try:
        rounds = 0
        while True:
            rounds += 1
            app.result("nobody").state
    except SoftTimeLimitExceeded:
        return "limit"
"""


@pytest.fixture
def started(tmp_path):
    (tmp_path / "flood.py").write_text(PROJECT)
    with processes(tmp_path) as started:
        yield started


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_soft_limits_inside_the_store_stop_nobody(started: Processes, pool: str) -> None:
    app = App(broker_url=f"sqlite:///{started.cwd / 'q.db'}")
    results = [app.submit(f"flood.{name}") for name in ("publish", "look") for _ in range(20)]

    worker = started.taskmq("-A", "flood", "worker", "-Q", "default", "-P", pool, name="worker")

    assert [result.get(timeout=40) for result in results] == ["limit"] * 40
    last = app.submit("flood.look")
    assert last.get(timeout=10) == "limit"
    assert last.state is State.SUCCEEDED
    app.close()
    worker.terminate()
    wait_until(lambda: worker.poll() is not None, what="the worker's end")
    assert worker.returncode == 0, started.log(worker)
