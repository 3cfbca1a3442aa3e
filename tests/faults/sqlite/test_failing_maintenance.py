"""Duties on a store that refuses them (row 10): tried again in their own time, not at every step."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskmq.testing
from taskmq.errors import TransportFull


def test_maintenance_that_fails_is_tried_again_in_its_own_time_and_keeps_none_from_theirs(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = taskmq.testing.app(broker_url=f"sqlite:///{path}", lease=30.0)
    with taskmq.testing.worker(app) as worker:
        coordination = worker.coordinator.transport.coordination
        worker.step()
        calls = []
        for rounds in worker.coordinator.chores._maintenance._rounds:  # type: ignore[union-attr]

            def call(name: str = rounds.name) -> None:
                calls.append(name)
                raise TransportFull("no room left")

            rounds.call = call
        assert coordination is not None
        for _ in range(600):
            worker.step()
            worker.clock.advance(0.1)
    app.close()

    said = [record for record in caplog.records if "maintenance failed" in record.getMessage()]
    assert len(said) == len(calls)
    counts = {name: calls.count(name) for name in ("reap", "sweep", "checkpoint")}
    # In sixty seconds, at intervals of 10, 5 and 10.
    assert all(4 <= count <= 13 for count in counts.values()), counts
