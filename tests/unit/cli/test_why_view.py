"""The one reason a task waits: one test per reason."""

from __future__ import annotations

from typing import Any

import pytest

from taskmq.cli.views.why import Reason, as_json, explain, line
from taskmq.coordination.base import WorkerInfo
from taskmq.message import ConcurrencyKey, DeadLetter, Rate, ResultRecord
from taskmq.states import State
from taskmq.transports.operators import Found
from tests.unit.cli.values import NOW, found, message, worker

SCHEDULED: dict[str, Any] = {"state": State.SCHEDULED, "due_at": NOW + 90}


def reason(
    one: Found | None = None,
    record: ResultRecord | None = None,
    workers: tuple[WorkerInfo, ...] = (worker(),),
    **more: Any,
) -> Reason:
    return explain([one] if one else [], record, workers, now=NOW, **more)


@pytest.mark.parametrize(
    ("one", "kind", "words"),
    [
        (found(**SCHEDULED), "not_due", "in 1m30s"),
        (found(**SCHEDULED, yielded=True, yields=3), "yielded", "comes back"),
        (found(**SCHEDULED, deliveries=2), "redelivery", "delivery 2 of 5"),
        (found(**SCHEDULED, message=message(retries=2)), "retry", "retry 2 is due"),
        (found(ahead=7), "behind", "behind 7 messages that are more urgent"),
        (found(ahead=1), "behind", "behind 1 message that is more urgent"),
        (found(ahead=1000, ahead_capped=True), "behind", "behind 1000 or more"),
        (found(), "next", "the next free slot takes it"),
        (found(paused=True), "paused", "queue email is paused"),
        (found(state=State.RESERVED, worker="w1"), "reserved", "reserved by w1"),
        (found(state=State.RUNNING, worker="w1"), "running", "running on w1"),
        (
            found(state=State.RUNNING, worker="w1", lease_until=NOW - 5),
            "running",
            "whose lease ended 5.0s ago",
        ),
        (
            found(message=message(concurrency=ConcurrencyKey("user:1")), blocked_by=("t8", "t9")),
            "concurrency_key",
            "'user:1' is held by t8, t9",
        ),
        (
            found(message=message(rate=Rate("shop.send", 6.0)), rate_until=NOW + 4, ahead=3),
            "rate_limit",
            "its token is due",
        ),
    ],
)
def test_each_reason_has_its_sentence(one: Found, kind: str, words: str) -> None:
    given = reason(one)

    assert given.kind == kind
    assert words in given.sentence


def test_no_worker_for_its_queue() -> None:
    given = reason(found(ahead=3), workers=(worker(queues=("default",)),))

    assert (given.kind, given.sentence) == ("no_worker", "no live worker consumes queue email")


def test_no_worker_knows_its_name() -> None:
    given = reason(found(), workers=(worker(tasks=("shop.other",)),))

    assert given.kind == "unknown_task"
    assert "knows the task 'shop.send' (w1)" in given.sentence


def test_a_name_no_worker_knows_is_the_reason_also_between_its_deliveries() -> None:
    given = reason(found(**SCHEDULED, deliveries=2), workers=(worker(tasks=("shop.other",)),))

    assert given.kind == "unknown_task"
    assert "knows the task 'shop.send' (w1)" in given.sentence
    assert "2 of 5 deliveries are used up" in given.sentence
    assert "lost" not in given.sentence


def test_a_retry_waits_for_its_time_whoever_knows_the_name() -> None:
    one = found(**SCHEDULED, message=message(retries=2))

    assert reason(one, workers=(worker(tasks=("shop.other",)),)).kind == "retry"


def test_one_worker_that_knows_the_name_is_enough() -> None:
    workers = (worker(tasks=("shop.other",)), worker(name="w2", tasks=("shop.send",)))

    assert reason(found(), workers=workers).kind == "next"


def test_a_worker_that_does_not_say_what_it_knows_may_know_it() -> None:
    assert reason(found(), workers=(worker(tasks=()),)).kind == "next"


def test_every_worker_of_its_queue_is_stopping() -> None:
    assert reason(found(), workers=(worker(state="draining"),)).kind == "draining"


@pytest.mark.parametrize("blocked", [{"blocked_by": ("t9",)}, {"ahead": 3}, SCHEDULED])
def test_a_paused_queue_comes_before_every_other_reason(blocked: dict[str, Any]) -> None:
    assert reason(found(paused=True, **blocked), workers=()).kind == "paused"


def test_what_is_due_already_is_not_called_not_due() -> None:
    assert reason(found(state=State.SCHEDULED, due_at=NOW - 1)).kind == "next"


def letter(**changes: Any) -> DeadLetter:
    values: dict[str, Any] = {
        "number": 12,
        "message": message(),
        "reason": "unreadable",
        "error": "DecodeError: no JSON",
        "died_at": NOW - 60,
        "deliveries": 1,
        "yields": 0,
    }
    return DeadLetter(**values | changes)


def test_a_dead_letter_says_why_and_how_to_replay_it() -> None:
    given = reason(found(state=State.DEAD, dead=letter()))

    assert given.kind == "dead"
    assert "unreadable (DecodeError: no JSON)" in given.sentence
    assert "taskmq dlq replay 12" in given.sentence


def test_a_message_that_can_still_run_comes_before_a_dead_letter_of_the_same_id() -> None:
    both = [found(state=State.DEAD, dead=letter()), found(ahead=2)]

    assert explain(both, None, [worker()], now=NOW).kind == "behind"


def record(state: State, **changes: Any) -> ResultRecord:
    return ResultRecord(task_id="t1", state=state, ended_at=NOW - 5, **changes)


def test_a_finished_task_says_what_it_ended_as() -> None:
    failed = record(
        State.FAILED, body=b'{"exc_type": "ValueError", "exc_message": ["boom"], "exc_module": "b"}'
    )

    assert reason(None, record(State.SUCCEEDED)).kind == "succeeded"
    assert reason(None, failed).sentence.endswith(": ValueError: boom")
    assert reason(None, record(State.EXPIRED)).kind == "expired"


@pytest.mark.parametrize(
    ("state", "failure", "said"),
    [
        (State.REVOKED, '"TaskRevoked", "exc_message": ["revoked"]', ""),
        (State.REVOKED, '"TaskRevoked", "exc_message": ["no longer wanted"]', ": no longer wanted"),
        (State.EXPIRED, '"TaskExpired", "exc_message": ["too late"]', ": too late"),
    ],
)
def test_an_ending_says_its_state_once(state: State, failure: str, said: str) -> None:
    body = f'{{"exc_type": {failure}, "exc_module": "taskmq.errors"}}'.encode()

    sentence = reason(None, record(state, body=body)).sentence

    assert sentence.startswith(f"{state} at ")
    assert sentence.partition(" at ")[2][8:] == said


def test_a_revoke_that_came_before_its_task_is_known() -> None:
    assert reason(None, revoked=True).kind == "revoked"


def test_an_id_nobody_knows_is_unknown() -> None:
    assert reason(None).state is State.UNKNOWN


def test_the_line_names_the_task_and_the_reason_once() -> None:
    one = found(ahead=7)
    running = found(state=State.RUNNING, worker="w1")

    assert line("t1", [one], reason(one)) == (
        "t1 shop.send in email at P0: queued, behind 7 messages that are more urgent or came earlier"
    )
    assert line("t1", [running], reason(running)).endswith("at P0: running on w1")
    assert line("t1", [one, one], reason(one)).endswith("(1 more message of this id)")


def test_json_carries_the_facts_of_the_reason() -> None:
    answer = as_json("t1", [found(ahead=7)], reason(found(ahead=7)))

    assert answer["reason"] == "behind"
    assert answer["facts"] == {"ahead": 7, "capped": False}
    assert (answer["queue"], answer["priority"], answer["state"]) == ("email", 0, "queued")
