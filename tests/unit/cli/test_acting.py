"""`taskmq dlq`, `purge` and `revoke` on a store in memory."""

from __future__ import annotations

import io

import pytest

from taskmq.app import App
from taskmq.message import ResultRecord
from taskmq.states import State
from taskmq.transports.base import Outcome, QueueShare, ReserveRequest, Verb
from tests.unit.cli.conftest import Run


def bury(app: App, count: int = 1, *, queue: str = "email", priority: int = 3) -> list[str]:
    """Submit, reserve and bury so many messages; their task ids."""
    ids = [app.submit("shop.report", (n,), queue=queue, priority=priority).id for n in range(count)]
    request = ReserveRequest(worker="w", queues=(QueueShare(queue),), slots=count)
    held = app.transport.reserve(request)
    app.transport.settle(
        [
            Outcome(delivery=d, verb=Verb.BURY, reason="rejected", error="Reject: no\x1b[31m")
            for d in held
        ]
    )
    return ids


def test_dlq_list_shows_number_reason_and_error(taskmq: Run, shop: App) -> None:
    (task_id,) = bury(shop)

    answer = taskmq("dlq", "list")

    assert answer.lines[0].split()[0] == "NUMBER"
    assert {"1", "P3", "email", "shop.report", "rejected", task_id} <= set(answer.lines[1].split())
    assert "\x1b" not in answer.out
    assert taskmq("dlq", "list", "--json").json[0]["task_id"] == task_id


def test_dlq_list_of_nothing_says_so(taskmq: Run) -> None:
    assert taskmq("dlq", "list").lines == ["no dead letters"]


def test_dlq_list_goes_on_after_a_page(taskmq: Run, shop: App) -> None:
    bury(shop, 5)

    page = taskmq("dlq", "list", "--limit", "2")
    rest = taskmq("dlq", "list", "--after", "2", "--json")

    assert "--after 2" in page.err
    assert [letter["number"] for letter in rest.json] == [3, 4, 5]


def test_dlq_list_filters(taskmq: Run, shop: App) -> None:
    bury(shop, 1)
    bury(shop, 1, queue="other")

    assert len(taskmq("dlq", "list", "--queue", "other", "--json").json) == 1
    assert taskmq("dlq", "list", "--task", "shop.nothing", "--json").json == []
    assert len(taskmq("dlq", "list", "--reason", "rejected", "--json").json) == 2


@pytest.mark.parametrize("by_id", [True, False])
def test_dlq_show_gives_arguments_and_reason(taskmq: Run, shop: App, by_id: bool) -> None:
    (task_id,) = bury(shop)

    answer = taskmq("dlq", "show", task_id if by_id else "1")

    assert "arguments   (0,)" in answer.lines
    assert "reason      rejected" in answer.lines
    assert taskmq("dlq", "show", "1", "--json").json["args"] == [0]


def test_dlq_show_of_none_is_exit_code_1(taskmq: Run) -> None:
    answer = taskmq("dlq", "show", "7")

    assert (answer.code, answer.out) == (1, "")
    assert "no dead letter 7" in answer.err


def test_dlq_replay_as_the_seed_writes_it(taskmq: Run, shop: App) -> None:
    bury(shop, 2)
    bury(shop, 1, queue="other")

    answer = taskmq("dlq", "replay", "--all", "--queue", "email", "--priority", "0")

    (depth,) = shop.transport.operators.depth()
    assert (answer.code, answer.out.strip()) == (0, "replayed 2 messages")
    assert (depth.queue, depth.priority, depth.ready) == ("email", 0, 2)
    assert [d.message.queue for d in shop.transport.operators.dead_letters()] == ["other"]


def test_dlq_replay_keeps_the_priority_when_none_is_given(taskmq: Run, shop: App) -> None:
    (task_id,) = bury(shop)

    answer = taskmq("dlq", "replay", task_id, "--json")

    assert answer.json == [
        {"task_id": task_id, "task": "shop.report", "queue": "email", "priority": 3}
    ]


def test_dlq_replay_of_many_goes_in_steps_and_loses_none(taskmq: Run, shop: App) -> None:
    bury(shop, 250)

    answer = taskmq("dlq", "replay", "--all")

    assert answer.out.strip() == "replayed 250 messages"
    assert shop.transport.operators.depth()[0].ready == 250


@pytest.mark.parametrize(
    "arguments", [[], ["1", "--all"], ["1", "--queue", "email"], ["--all", "--priority", "12"]]
)
def test_dlq_replay_refuses_what_could_be_meant_two_ways(
    taskmq: Run, shop: App, arguments: list[str]
) -> None:
    bury(shop)

    assert taskmq("dlq", "replay", *arguments).code == 2
    assert len(shop.transport.operators.dead_letters()) == 1


def test_dlq_replay_of_one_that_is_not_there_is_exit_code_1(taskmq: Run, shop: App) -> None:
    bury(shop)

    answer = taskmq("dlq", "replay", "99")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.strip() == "Error: there is no dead letter 99"


@pytest.mark.parametrize("command", [("replay",), ("drop", "--yes")])
def test_one_of_several_that_is_not_there_is_exit_code_1_and_the_others_are_done(
    taskmq: Run, shop: App, command: tuple[str, ...]
) -> None:
    bury(shop)

    answer = taskmq("dlq", *command, "1", "99")

    assert answer.code == 1
    assert "there is no dead letter 99" in answer.err
    assert shop.transport.operators.dead_letters() == []


def test_dlq_drop_asks_first(taskmq: Run, shop: App) -> None:
    bury(shop, 2)

    refused = taskmq("dlq", "drop", "--all")
    dropped = taskmq("dlq", "drop", "--all", "--yes")

    assert refused.code == 2
    assert "--yes" in refused.err
    assert dropped.out.strip() == "dropped 2 dead letters"
    assert shop.transport.operators.dead_letters() == []


def test_dlq_drop_of_one_that_is_not_there_says_only_that(taskmq: Run) -> None:
    answer = taskmq("dlq", "drop", "99")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.strip() == "Error: there is no dead letter 99"


class Keyboard(io.StringIO):
    """A person at a terminal who has typed this."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("command", [["dlq", "drop", "--all"], ["purge"]])
def test_a_no_deletes_nothing_and_is_no_interrupt(
    taskmq: Run, shop: App, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    bury(shop)
    shop.submit("shop.report")
    monkeypatch.setattr("sys.stdin", Keyboard("n\n"))

    answer = taskmq(*command)

    assert answer.code == 1
    assert answer.err.endswith("Nothing was deleted.\n")
    assert "Interrupted" not in answer.err
    assert len(shop.transport.operators.dead_letters()) == 1
    assert sum(d.ready for d in shop.transport.operators.depth()) == 1


def test_purge_does_not_ask_where_nothing_waits(taskmq: Run) -> None:
    answer = taskmq("purge", "-Q", "email")

    assert (answer.code, answer.lines) == (0, ["nothing waits in email"])


def test_purge_asks_first_and_counts_per_queue(taskmq: Run, shop: App) -> None:
    shop.submit("shop.report", queue="email")
    shop.submit("shop.report", queue="other", countdown=60)

    refused = taskmq("purge")
    purged = taskmq("purge", "--force", "-X", "email")

    assert refused.code == 2
    assert "Purge 2 messages of email, other?" in refused.err
    assert purged.lines == ["other: purged 1 message"]
    assert [d.queue for d in shop.transport.operators.depth()] == ["email"]


def test_revoke_says_what_each_was(taskmq: Run, shop: App) -> None:
    waiting = shop.submit("shop.report").id

    answer = taskmq("revoke", waiting, "later-1")

    assert answer.lines == [
        f"{waiting}: revoked, it was queued",
        "later-1: not known here; it will be revoked when it arrives",
    ]
    assert shop.state(waiting) is State.REVOKED
    assert shop.transport.operators.is_revoked("later-1")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (State.SUCCEEDED, "it has succeeded"),
        (State.FAILED, "it has failed"),
        (State.REVOKED, "it was revoked"),
        (State.EXPIRED, "it has expired"),
    ],
)
def test_revoke_of_what_is_over_says_how_it_ended(
    taskmq: Run, shop: App, state: State, said: str
) -> None:
    shop.results.put([ResultRecord(task_id="t1", state=state)])

    assert taskmq("revoke", "t1").lines == [f"t1: over already, {said}"]


def test_revoke_tells_the_workers_of_a_running_task(taskmq: Run, shop: App) -> None:
    from tests.unit.cli.values import worker

    task_id = shop.submit("shop.report").id
    (held,) = shop.transport.reserve(
        ReserveRequest(worker="w1", queues=(QueueShare("default"),), slots=1)
    )
    shop.transport.start([held])
    now = shop.clock.now()
    shop.transport.coordination.report(worker(seen_at=now, last_poll_at=now))

    answer = taskmq("revoke", task_id, "--terminate")

    (command,) = shop.transport.coordination.commands("w1")
    assert answer.lines == [f"{task_id}: running, its worker is told to stop it"]
    assert (command.name, command.arguments) == (
        "revoke",
        {"task_ids": [task_id], "terminate": True, "reason": ""},
    )


def test_revoke_says_that_a_worker_without_remote_control_hears_nothing(
    taskmq: Run, shop: App
) -> None:
    from tests.unit.cli.values import worker

    task_id = shop.submit("shop.report").id
    (held,) = shop.transport.reserve(
        ReserveRequest(worker="w1", queues=(QueueShare("default"),), slots=1)
    )
    shop.transport.start([held])
    now = shop.clock.now()
    deaf = worker(seen_at=now, last_poll_at=now, details={"control": False})
    shop.transport.coordination.report(deaf)

    answer = taskmq("revoke", task_id, "--terminate")

    assert answer.lines == [
        f"{task_id}: running, its worker takes no commands; it goes on unless it checks"
    ]
