"""What `taskmq status` says, from values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taskmq.cli.views import status as view
from taskmq.transports.operators import Depth, QueueInfo
from tests.unit.cli.values import NOW, worker


def seen(depths: Sequence[Depth], **changes: Any) -> view.Status:
    values: dict[str, Any] = {
        "where": "sqlite:////srv/taskmq.db",
        "now": NOW,
        "depths": depths,
        "queues": [QueueInfo("email", paused=False)],
        "workers": [worker(queues=("email",))],
        "dead": 0,
        "starvation_after": 300.0,
    }
    return view.gather(**values | changes)


EMAIL = [
    Depth("email", 9, ready=3, oldest_at=NOW - 0.2),
    Depth("email", 5, ready=12, running=1, oldest_at=NOW - 4),
    Depth("email", 0, ready=104, scheduled=2, reserved=3, blocked=1, oldest_at=NOW - 724),
]


def test_by_priority_prints_the_line_of_the_seed() -> None:
    lines = view.by_priority(seen(EMAIL))

    assert lines[0] == "email: P9=3 P5=12 P0=104"


def test_by_priority_gives_the_oldest_age_of_every_band() -> None:
    lines = view.by_priority(seen(EMAIL))

    assert lines[1] == "  oldest    P9 0.2s  P5 4.0s  P0 12m04s"
    assert lines[2] == "  besides   1 running, 3 reserved, 2 scheduled, 1 blocked"


def test_bands_come_from_the_most_urgent_down_whatever_their_order() -> None:
    assert view.by_priority(seen(EMAIL[::-1]))[0] == "email: P9=3 P5=12 P0=104"


def test_a_band_without_claimable_messages_is_not_in_the_line() -> None:
    lines = view.by_priority(seen([Depth("email", -5, scheduled=7)]))

    assert lines == ["email: nothing waits", "  besides   7 scheduled"]


def test_who_starves_is_said_with_how_long() -> None:
    alarms = view.warnings(seen(EMAIL))

    assert alarms == [
        "email: P0 starves, its oldest of 104 waits 12m04s (starvation_after is 5m00s)"
    ]


def test_a_paused_queue_is_not_called_starving() -> None:
    alarms = view.warnings(seen(EMAIL, queues=[QueueInfo("email", paused=True)]))

    assert alarms == ["email is paused, 119 messages wait: taskmq queue resume email"]


def test_a_queue_nobody_consumes_is_pointed_out() -> None:
    alarms = view.warnings(seen(EMAIL, workers=[worker(queues=("default",))]))

    assert alarms == ["email: no live worker consumes it, 119 waiting"]


def test_dead_letters_are_counted_so_far() -> None:
    assert view.warnings(seen([], dead=2)) == ["2 dead letters: taskmq dlq list"]
    assert view.warnings(seen([], dead=100, dead_capped=True)) == [
        "100 or more dead letters: taskmq dlq list"
    ]


def test_workers_show_the_time_since_they_reported() -> None:
    lines = view.worker_lines(seen([], workers=[worker()]))

    assert lines[0].split() == ["WORKER", "STATE", "SLOTS", "PID", "UP", "REPORTED", "QUEUES"]
    assert lines[1].split() == [
        "w1",
        "running",
        "2",
        "42",
        "1h00m",
        "1.0s",
        "ago",
        "default,",
        "email",
    ]
    assert view.worker_lines(seen([], workers=[])) == ["no worker is alive"]


def test_a_last_poll_long_before_the_report_is_told_and_a_healthy_one_is_not() -> None:
    stuck = worker(seen_at=NOW - 3, last_poll_at=NOW - 95)
    healthy = worker(seen_at=NOW - 9, last_poll_at=NOW - 9.1)

    lines = view.worker_lines(seen([], workers=[stuck, healthy]))

    assert "3.0s ago, polled 1m32s before" in lines[1]
    assert "polled" not in lines[2]


def test_queues_the_application_declares_are_listed_before_their_first_message() -> None:
    lines = view.by_queue(seen([], queues=[], workers=[], declared={"email", "default"}))

    assert [line.split()[0] for line in lines] == ["QUEUE", "default", "email"]


def test_the_workers_fit_into_one_line() -> None:
    two = [worker(), worker(name="w2", seen_at=NOW - 4)]

    assert view.worker_summary(seen([], workers=two)) == (
        "workers: 2 alive with 4 slots, reported 1.0s to 4.0s ago"
    )
    assert view.worker_summary(seen([], workers=[worker()])).endswith("2 slots, reported 1.0s ago")
    assert view.worker_summary(seen([], workers=[])) == "workers: none is alive"


def test_queues_that_are_only_consumed_are_listed_too() -> None:
    lines = view.by_queue(seen([], queues=[], workers=[worker()]))

    assert [line.split()[0] for line in lines] == ["QUEUE", "default", "email"]


def test_json_says_the_same_as_the_lines() -> None:
    answer = view.as_json(seen(EMAIL))

    queue = next(q for q in answer["queues"] if q["queue"] == "email")
    assert [(b["priority"], b["ready"], b["starving"]) for b in queue["bands"]] == [
        (9, 3, False),
        (5, 12, False),
        (0, 104, True),
    ]
    assert queue["oldest_age"] == 724
    assert answer["workers"][0]["seconds_since_poll"] == NOW - worker().last_poll_at
    assert answer["warnings"] == view.warnings(seen(EMAIL))


def test_a_queue_name_cannot_forge_lines() -> None:
    lines = view.by_priority(seen([Depth("x\nemail: P9=0", 0, ready=1)]))

    assert all("\n" not in line for line in lines)
