"""`taskmq status`, `peek`, `why` and `queue list` on a store in memory."""

from __future__ import annotations

from taskmq.app import App
from taskmq.clock import FakeClock
from tests.unit.cli.conftest import Run


def submit(app: App, *priorities: int, queue: str = "email") -> list[str]:
    return [app.submit("shop.report", (), {}, priority=p, queue=queue).id for p in priorities]


def test_11_status_by_priority_prints_correctly(taskmq: Run, shop: App) -> None:
    """Seed §9 item 11."""
    submit(shop, *[0] * 104, *[9] * 3, *[5] * 12)

    answer = taskmq("status", "--by-priority")

    assert answer.code == 0
    assert "email: P9=3 P5=12 P0=104" in answer.lines


def test_status_can_be_narrowed_to_queues(taskmq: Run, shop: App) -> None:
    submit(shop, 0)
    submit(shop, 1, queue="other")

    answer = taskmq("status", "--by-priority", "-Q", "other")

    assert answer.lines[0] == "other: P1=1"
    assert "email" not in answer.out


def test_status_says_who_starves_only_once_it_does(
    taskmq: Run, shop: App, clock: FakeClock
) -> None:
    submit(shop, -3)
    assert taskmq("status", "--json").json["queues"][-1]["bands"][0]["starving"] is False

    clock.advance(shop.config.starvation_after + 1)

    band = taskmq("status", "--json").json["queues"][-1]["bands"][0]
    assert (band["priority"], band["starving"]) == (-3, True)


def test_status_of_an_empty_store_reads_well(taskmq: Run) -> None:
    answer = taskmq("status")

    assert answer.code == 0
    assert "no worker is alive" in answer.out


def test_peek_is_the_claim_order(taskmq: Run, shop: App) -> None:
    low, high, middle = submit(shop, -5, 9, 0)

    answer = taskmq("peek", "--json")

    assert [entry["task_id"] for entry in answer.json] == [high, middle, low]
    assert [entry["position"] for entry in answer.json] == [1, 2, 3]


def test_peek_shows_so_many(taskmq: Run, shop: App) -> None:
    submit(shop, *range(5))

    lines = taskmq("peek", "--limit", "2").lines

    assert len(lines) == 3
    assert lines[1].split()[:3] == ["1", "P4", "email"]


def test_peek_of_nothing_says_so(taskmq: Run) -> None:
    assert taskmq("peek").lines == ["nothing can be claimed now"]


def test_why_counts_what_is_before_it_once_somebody_serves_it(taskmq: Run, shop: App) -> None:
    first, second = submit(shop, 0, 0)
    assert taskmq("why", second, "--json").json["reason"] == "no_worker"

    taskmq("queue", "pause", "email")

    assert "queue email is paused" in taskmq("why", first).out


def test_why_of_a_scheduled_task_says_when(taskmq: Run, shop: App) -> None:
    task_id = shop.submit("shop.report", countdown=90).id

    answer = taskmq("why", task_id)

    assert "not due before" in answer.out
    assert "in 1m30s" in answer.out


def test_why_of_an_unknown_id_is_exit_code_1(taskmq: Run) -> None:
    answer = taskmq("why", "nobody\x1b[2J")

    assert answer.code == 1
    assert "unknown" in answer.out
    assert "\x1b" not in answer.out


def test_queue_list_shows_weights_and_what_is_paused(taskmq: Run, shop: App) -> None:
    submit(shop, 0, 1)
    taskmq("queue", "pause", "email")

    rows = {row["queue"]: row for row in taskmq("queue", "list", "--json").json}

    assert (rows["email"]["ready"], rows["email"]["weight"], rows["email"]["paused"]) == (
        2,
        3,
        True,
    )
    assert rows["default"]["paused"] is False


def test_queue_resume_undoes_pause(taskmq: Run, shop: App) -> None:
    taskmq("queue", "pause", "email", "default")
    assert all(info.paused for info in shop.transport.operators.queues())

    taskmq("queue", "resume", "email", "default")

    assert not any(info.paused for info in shop.transport.operators.queues())
