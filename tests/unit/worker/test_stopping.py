"""The drain ladder: TERM drains, a second one or QUIT is now, and every rung has an end."""

from __future__ import annotations

from taskmq.worker.stopping import SETTLE_GRACE, Ladder, Stage


def test_the_first_request_drains_with_a_deadline() -> None:
    ladder = Ladder(drain_timeout=25.0, lease=30.0)
    ladder.ask("SIGTERM")
    assert ladder.take(100.0)
    assert ladder.stage is Stage.DRAINING
    assert ladder.deadline == 125.0
    assert not ladder.late(124.9)
    assert ladder.late(125.0)


def test_a_second_request_is_now() -> None:
    ladder = Ladder(drain_timeout=25.0, lease=30.0)
    ladder.ask("SIGTERM")
    ladder.take(100.0)
    ladder.ask("SIGTERM")
    assert not ladder.take(101.0)
    assert ladder.late(101.0)


def test_quit_is_now_at_once() -> None:
    ladder = Ladder(drain_timeout=None, lease=30.0)
    ladder.ask("SIGQUIT", at_once=True)
    ladder.take(100.0)
    assert ladder.late(100.0)


def test_without_a_drain_timeout_a_draining_worker_waits() -> None:
    ladder = Ladder(drain_timeout=None, lease=30.0)
    ladder.ask("SIGTERM")
    ladder.take(100.0)
    assert ladder.deadline is None
    assert not ladder.late(1e9)


def test_the_last_settling_is_given_up_sooner_when_the_worker_is_late() -> None:
    in_time, late = (Ladder(drain_timeout=1.0, lease=30.0) for _ in range(2))
    in_time.end(100.0, hurried=False)
    late.end(100.0, hurried=True)
    assert in_time.deadline == 130.0
    assert late.deadline == 100.0 + SETTLE_GRACE
