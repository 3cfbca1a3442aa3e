"""Driving a virtual worker step by step."""

from __future__ import annotations

from typing import Any

from taskmq import App
from taskmq.testing import VirtualWorker
from taskmq.worker.stopping import Stage


def work_of(app: App) -> Any:
    return app.task(name="jobs.work")(lambda: None)


def stage(w: VirtualWorker) -> Stage:
    """A call, so that mypy does not take a stage for lasting."""
    return w.coordinator.stage


def steps(w: VirtualWorker, count: int = 3) -> None:
    for _ in range(count):
        w.step()
