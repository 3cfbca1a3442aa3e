"""What becomes of a message, by how its run ended: DESIGN §7's table and the failures around it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from taskmq.message import Delivery
from taskmq.pools.base import Completion, Ending
from taskmq.retry import RetryPolicy
from taskmq.states import AckMode, State
from taskmq.transports.base import Outcome, Verb
from taskmq.worker.outcomes import Settling
from tests.unit.worker.values import completion, delivery

NOW = 1_000.0


def settle(
    ended: Completion, held: Delivery, *, retry: RetryPolicy | None = None, **settings: Any
) -> Outcome:
    settling = Settling(
        **{
            "worker": "w1",
            "result_expires": 60.0,
            "keep_results": True,
            "random": Random(1),
            "retry_of": lambda name: (retry, "keep"),
            **settings,
        }
    )
    return settling.outcome(ended, held, NOW)


def state(outcome: Outcome) -> State | None:
    return outcome.result.state if outcome.result else None


# -- the table --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ack", "ending", "verb", "counted", "result", "reason"),
    [
        (AckMode.ON_FINISH, Ending.LOST, Verb.RELEASE, True, None, ""),
        (AckMode.ON_START, Ending.LOST, Verb.BURY, False, State.FAILED, "worker-lost"),
        (AckMode.LATE, Ending.LOST, Verb.BURY, False, State.FAILED, "worker-lost"),
        (AckMode.ON_FINISH, Ending.HANDED_BACK, Verb.RELEASE, False, None, ""),
        (AckMode.ON_START, Ending.HANDED_BACK, Verb.BURY, False, State.FAILED, "worker-lost"),
        (AckMode.LATE, Ending.HANDED_BACK, Verb.RELEASE, False, None, ""),
        (AckMode.ON_START, Ending.NOT_STARTED, Verb.RELEASE, False, None, ""),
    ],
)
def test_acknowledgement_decides_what_a_lost_or_handed_back_run_means(
    ack: AckMode,
    ending: Ending,
    verb: Verb,
    counted: bool,
    result: State | None,
    reason: str,
) -> None:
    outcome = settle(completion(ending, error="SIGKILL"), delivery(ack=ack))
    assert (outcome.verb, outcome.counted) == (verb, counted)
    assert (state(outcome), outcome.reason) == (result, reason)


@pytest.mark.parametrize(
    ("ending", "verb", "result", "reason"),
    [
        (Ending.SUCCEEDED, Verb.FINISH, State.SUCCEEDED, ""),
        (Ending.FAILED, Verb.BURY, State.FAILED, "failed"),
        (Ending.TIMED_OUT, Verb.BURY, State.FAILED, "time-limit"),
        (Ending.UNREADABLE, Verb.BURY, State.DEAD, "unreadable"),
        (Ending.BURY, Verb.BURY, State.DEAD, "rejected"),
        (Ending.CANCELLED, Verb.FINISH, State.REVOKED, ""),
        (Ending.IGNORED, Verb.FINISH, None, ""),
        (Ending.REQUEUE, Verb.RELEASE, None, ""),
        (Ending.RETRY, Verb.RETRY, State.RETRYING, ""),
        (Ending.PROGRESS, Verb.REPORT, State.RUNNING, ""),
    ],
)
def test_every_other_ending_has_its_verb_and_its_result(
    ending: Ending, verb: Verb, result: State | None, reason: str
) -> None:
    outcome = settle(completion(ending, body=b"1", error="E"), delivery())
    assert (outcome.verb, state(outcome), outcome.reason) == (verb, result, reason)


def test_every_ending_is_handled() -> None:
    for ending in Ending:
        outcome = settle(completion(ending), delivery())
        assert outcome.verb in Verb


# -- loops that end ---------------------------------------------------------------------------------


def test_the_last_delivery_whose_child_dies_is_a_crash_loop() -> None:
    outcome = settle(
        completion(Ending.LOST, error="was killed by SIGSEGV"),
        delivery(deliveries=3, max_deliveries=3),
    )
    assert (outcome.verb, outcome.reason, state(outcome)) == (
        Verb.BURY,
        "crash-loop",
        State.DEAD,
    )
    assert "SIGSEGV" in outcome.error


def test_a_message_whose_child_died_runs_again_at_once_and_later_ones_wait_longer() -> None:
    delays = [
        settle(completion(Ending.LOST), delivery(deliveries=n, max_deliveries=9)).delay
        for n in (1, 2, 3, 4)
    ]
    assert delays[0] == 0
    assert 0 < delays[1] < delays[2] < delays[3]


def test_an_unknown_task_waits_for_a_newer_worker_and_is_buried_in_the_end() -> None:
    unknown = completion(Ending.UNREGISTERED, body=b"{}", error="NotRegistered: no task 'x'")
    first = settle(unknown, delivery(deliveries=1, max_deliveries=2))
    last = settle(unknown, delivery(deliveries=2, max_deliveries=2))
    assert (first.verb, first.counted) == (Verb.RELEASE, True)
    assert first.delay > 0
    assert (last.verb, last.reason, state(last)) == (Verb.BURY, "unknown-task", State.FAILED)


def test_a_task_that_requeues_itself_does_not_spin() -> None:
    outcome = settle(completion(Ending.REQUEUE), delivery(deliveries=4, max_deliveries=5))
    assert outcome.delay > 0
    assert not outcome.counted


# -- details ----------------------------------------------------------------------------------------


def test_a_retry_takes_delay_priority_and_body_from_the_run() -> None:
    ended = completion(Ending.RETRY, delay=3.0, priority=-2, new_body=b"new", body=b"{}")
    outcome = settle(ended, delivery())
    assert (outcome.delay, outcome.priority, outcome.body) == (3.0, -2, b"new")


def test_a_hard_limit_is_retried_where_the_policy_names_it() -> None:
    from taskmq.errors import TimeLimitExceeded

    policy = RetryPolicy(max_retries=1, delay=5, jitter=0, on=(TimeLimitExceeded,))
    first = settle(completion(Ending.TIMED_OUT), delivery(priority=4), retry=policy)
    second = settle(completion(Ending.TIMED_OUT), delivery(retries=1), retry=policy)
    assert (first.verb, first.delay, first.priority) == (Verb.RETRY, 5, 4)
    assert (second.verb, second.reason) == (Verb.BURY, "time-limit")


def test_results_are_kept_as_long_as_the_message_or_else_the_settings_say() -> None:
    ended = completion(Ending.SUCCEEDED, body=b"1")
    kept = [settle(ended, delivery(result_expires=expires)).result for expires in (None, 5.0, 0.0)]
    assert [r.expires_at for r in kept if r] == [NOW + 60, NOW + 5, None]


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED, Ending.RETRY, Ending.PROGRESS])
def test_a_message_that_keeps_no_result_gets_none(ending: Ending) -> None:
    assert settle(completion(ending), delivery(store_result=False)).result is None
    assert settle(completion(ending), delivery(), keep_results=False).result is None


def test_a_revoked_run_reads_the_same_whether_it_stopped_or_was_stopped() -> None:
    stopped_itself = settle(completion(Ending.CANCELLED, body=b"{}", error="x"), delivery())
    terminated = settle(completion(Ending.CANCELLED, error="revoked and terminated"), delivery())
    for outcome in (stopped_itself, terminated):
        assert outcome.result is not None
        assert json.loads(outcome.result.body or b"")["exc_type"] == "TaskRevoked"


def test_what_a_foreign_body_carried_follows_it() -> None:
    sig = {"task": "jobs.next", "args": [], "kwargs": {}, "options": {}, "immutable": True}
    follow = json.dumps({"callbacks": [sig]})
    outcome = settle(completion(Ending.SUCCEEDED, body=b"1", follow=follow), delivery())
    assert [m.task for m in outcome.then.submits] == ["jobs.next"]


def test_an_ignored_run_leaves_its_workflow_alone() -> None:
    sig = {"task": "jobs.next", "args": [], "kwargs": {}, "options": {}, "immutable": True}
    held = delivery(follow=json.dumps({"callbacks": [sig], "errbacks": [sig]}))
    outcome = settle(completion(Ending.IGNORED), held)
    assert not outcome.then
    assert outcome.result is None
