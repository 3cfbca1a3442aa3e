"""Prefork: children that cannot start, and those that are spawned."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from taskmq import App
from taskmq.clock import FakeClock
from taskmq.pools import starts
from taskmq.pools.base import Pool
from taskmq.pools.child import ChildSettings
from taskmq.pools.prefork import PreforkPool
from tests.support.waiting import wait_until
from tests.unit.pools.conftest import MakePool
from tests.unit.pools.jobs import Driver, job_of


def retry_at(pool: Pool) -> float | None:
    """When the next start is tried, once all that were tried have failed."""
    return None if pool.pids() else pool.next_timer()


# -- starts that fail ---------------------------------------------------------------------------------


def test_failing_starts_back_off_one_at_a_time_and_give_up_at_boot(
    app: App, start: MakePool
) -> None:
    app.hooks.child_init.connect(lambda app: os._exit(1))
    clock = FakeClock()
    driver = start(4, clock=clock)
    pool = driver.pool
    waits = []
    for _ in range(starts.BOOT_ATTEMPTS - 1):
        at = wait_until(lambda: (driver.poll() and retry_at(pool)) or 0.0)
        waits.append(round(at - clock.monotonic()))
        assert pool.free() == 0
        assert not pool.up()
        clock.advance(waits[-1])
    wait_until(lambda: driver.poll() and pool.broken())
    assert waits == [1, 2, 4, 8]
    assert "exited with code 1" in str(pool.broken())
    assert pool.pids() == []


def test_a_start_that_works_again_fills_the_pool(app: App, start: MakePool, tmp_path: Path) -> None:
    marker = tmp_path / "broken"
    marker.touch()
    app.hooks.child_init.connect(lambda app: os._exit(1) if marker.exists() else None)
    clock = FakeClock()
    driver = start(3, clock=clock)
    wait_until(lambda: driver.poll() and retry_at(driver.pool))
    marker.unlink()
    clock.advance(1)
    driver.wait_free(3)
    assert driver.pool.broken() is None


# -- spawned children -----------------------------------------------------------------------------------

PROJECT = """
import os
from taskmq import App
app = App(broker_url="memory://")

@app.task
def where() -> list:
    return [os.getppid(), __name__, os.environ.get("PYTHONPATH", "none")]
"""


def test_spawned_children_load_the_app_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, app: App
) -> None:
    (tmp_path / "spawned_project.py").write_text(PROJECT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    settings = ChildSettings(app_spec="spawned_project:app")
    pool = PreforkPool(app, 1, clock=app.clock, settings=settings, spawn=True)
    pool.start()
    try:
        completion = Driver(pool).run(job_of(app, "spawned_project.where"))
        assert completion.body == f'[{os.getpid()},"spawned_project","none"]'.encode()
    finally:
        pool.stop(hand_back=False)
