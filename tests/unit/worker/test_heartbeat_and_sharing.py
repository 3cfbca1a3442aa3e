"""A worker tells of free slots only once they last, and hands back what an idle one could run."""

from __future__ import annotations

from typing import Any

import pytest

from taskmq.clock import FakeClock
from taskmq.config import Config
from taskmq.coordination.base import WorkerInfo
from taskmq.worker.heartbeat import INTERVAL, Heartbeat
from taskmq.worker.options import WorkerOptions
from taskmq.worker.rules import Rules, resolve
from taskmq.worker.sharing import Sharing
from tests.unit.worker.values import delivery


@pytest.fixture
def rules() -> Rules:
    return resolve(
        Config(poll_interval=0.05), WorkerOptions(concurrency=2, queues=("a", "b")), "me"
    )


def beat(heartbeat: Heartbeat) -> int:
    return heartbeat.info(state="running", last_poll_at=0.0, details={}).free_slots


def test_the_first_row_is_written_at_once_and_then_every_interval(rules: Rules) -> None:
    clock = FakeClock()
    heartbeat = Heartbeat(rules, clock=clock, tasks=())
    assert heartbeat.due(clock.monotonic(), 0)
    assert beat(heartbeat) == 0
    assert not heartbeat.due(clock.monotonic(), 0)
    clock.advance(INTERVAL)
    assert heartbeat.due(clock.monotonic(), 0)


def test_slots_free_for_a_poll_interval_are_told_once(rules: Rules) -> None:
    clock = FakeClock()
    heartbeat = Heartbeat(rules, clock=clock, tasks=())
    heartbeat.due(clock.monotonic(), 0)
    beat(heartbeat)
    assert not heartbeat.due(clock.monotonic(), 2)
    clock.advance(0.06)
    assert heartbeat.due(clock.monotonic(), 2)
    assert beat(heartbeat) == 2
    assert not heartbeat.due(clock.monotonic(), 2)


def test_a_worker_that_is_busy_in_short_bursts_writes_nothing(rules: Rules) -> None:
    clock = FakeClock()
    heartbeat = Heartbeat(rules, clock=clock, tasks=())
    heartbeat.due(clock.monotonic(), 2)
    clock.advance(0.06)
    heartbeat.due(clock.monotonic(), 2)
    beat(heartbeat)
    for _ in range(50):
        assert not heartbeat.due(clock.monotonic(), 0)
        clock.advance(0.01)
        assert not heartbeat.due(clock.monotonic(), 2)
        clock.advance(0.01)


def test_taken_slots_are_told_too_so_that_nobody_sends_more(rules: Rules) -> None:
    clock = FakeClock()
    heartbeat = Heartbeat(rules, clock=clock, tasks=())
    heartbeat.due(clock.monotonic(), 2)
    clock.advance(0.06)
    heartbeat.due(clock.monotonic(), 2)
    assert beat(heartbeat) == 2
    heartbeat.due(clock.monotonic(), 0)
    clock.advance(0.06)
    assert heartbeat.due(clock.monotonic(), 0)
    assert beat(heartbeat) == 0


def test_a_draining_worker_shows_no_free_slot(rules: Rules) -> None:
    clock = FakeClock()
    heartbeat = Heartbeat(rules, clock=clock, tasks=())
    heartbeat.due(clock.monotonic(), 2)
    clock.advance(1)
    heartbeat.due(clock.monotonic(), 2)
    info = heartbeat.info(state="draining", last_poll_at=0.0, details={})
    assert (info.free_slots, info.state) == (0, "draining")


def other(name: str, free: int, *queues: str, **changes: Any) -> WorkerInfo:
    fields: dict[str, Any] = {
        "name": name,
        "pid": 1,
        "host": "h",
        "queues": queues,
        "slots": 4,
        "free_slots": free,
        "started_at": 0.0,
        "seen_at": 0.0,
        "last_poll_at": 0.0,
    }
    return WorkerInfo(**{**fields, **changes})


def held(*queues: str) -> list[Any]:
    return [delivery(queue=queue, started=False) for queue in queues]


def test_as_many_are_handed_back_as_others_have_free_slots_the_next_ones_first(
    rules: Rules,
) -> None:
    sharing = Sharing(rules)
    waiting = held("a", "a", "a", "a")
    back = sharing.to_hand_back(0.0, [other("x", 1, "a"), other("y", 1, "a", "b")], waiting)
    assert back == waiting[:2]
    assert sharing.others_idle


@pytest.mark.parametrize(
    "row",
    [
        other("me", 4, "a"),
        other("x", 0, "a"),
        other("x", 4, "c"),
        other("x", 4, "a", state="draining"),
    ],
    ids=["itself", "busy", "another queue", "draining"],
)
def test_who_could_not_run_it_gets_nothing(rules: Rules, row: WorkerInfo) -> None:
    sharing = Sharing(rules)
    assert sharing.to_hand_back(0.0, [row], held("a")) == []
    assert not sharing.others_idle


def test_only_deliveries_of_queues_the_other_consumes_are_handed_back(rules: Rules) -> None:
    waiting = held("b", "a", "b")
    back = Sharing(rules).to_hand_back(0.0, [other("x", 3, "a")], waiting)
    assert back == [waiting[1]]


def test_the_others_are_looked_at_once_per_poll_interval_and_only_when_it_matters(
    rules: Rules,
) -> None:
    sharing = Sharing(rules)
    assert not sharing.due(0.0, 0)
    assert sharing.due(0.0, 1)
    sharing.to_hand_back(0.0, [other("x", 1, "a")], held("a"))
    assert not sharing.due(0.01, 1)
    # While somebody else was idle the next look decides whether prefetching starts again.
    assert sharing.due(0.06, 0)
    sharing.to_hand_back(0.06, [], [])
    assert not sharing.due(1.0, 0)
