"""The drain ladder: TERM drains, a second one or QUIT is now, and every rung has an end."""

from __future__ import annotations

import pytest

from taskmq.worker.stopping import SETTLE_GRACE, Ladder, Stage, stopping


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
    assert (ladder.hurried, ladder.left(101.0)) == (False, 24.0)
    assert not ladder.take(101.0)
    assert ladder.late(101.0)
    assert (ladder.hurried, ladder.left(101.0)) == (True, 0.0)


def test_quit_is_now_at_once() -> None:
    ladder = Ladder(drain_timeout=None, lease=30.0)
    ladder.ask("SIGQUIT", at_once=True)
    ladder.take(100.0)
    assert ladder.late(100.0)
    assert ladder.hurried


def test_without_a_drain_timeout_a_draining_worker_waits() -> None:
    ladder = Ladder(drain_timeout=None, lease=30.0)
    ladder.ask("SIGTERM")
    ladder.take(100.0)
    assert ladder.deadline is None
    assert ladder.left(100.0) is None
    assert not ladder.late(1e9)


def test_the_last_settling_is_given_up_sooner_when_the_worker_is_late() -> None:
    in_time, late = (Ladder(drain_timeout=1.0, lease=30.0) for _ in range(2))
    in_time.end(100.0, hurried=False)
    late.end(100.0, hurried=True)
    assert in_time.deadline == 130.0
    assert late.deadline == 100.0 + SETTLE_GRACE


@pytest.mark.parametrize(
    ("running", "unstarted", "left", "said"),
    [
        (0, 0, 25.0, "stopping (SIGINT): nothing runs"),
        (1, 0, 25.0, "1 task runs and has 25 s to end. A second signal stops at once"),
        (2, 0, 2.5, "2 tasks run and have 2.5 s to end. A second signal stops at once"),
        (1, 2, None, "1 task runs, 2 not started go back. A second signal stops at once"),
        (0, 1, 25.0, "stopping (SIGINT): 1 not started goes back"),
        (2, 0, 0.0, "stopping (SIGINT): 2 tasks run and have 0 s to end"),
    ],
)
def test_whoever_stops_a_worker_is_told_what_it_waits_for_and_how_to_stop_it_now(
    running: int, unstarted: int, left: float | None, said: str
) -> None:
    text = stopping("SIGINT", running=running, unstarted=unstarted, left=left)

    assert text.endswith(said)
