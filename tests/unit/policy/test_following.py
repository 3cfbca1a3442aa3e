"""What follows one ending: callbacks, the next step, error callbacks, results of what never runs."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from taskmq.codec import Codec
from taskmq.message import ConcurrencyKey, Rate
from taskmq.policy.following import NOTHING, ended, succeeded
from taskmq.policy.steps import ERRBACK, baked_options
from taskmq.states import AckMode, State
from tests.unit.policy.workflows import (
    JSON,
    NOW,
    after_failure,
    after_success,
    arguments,
    group,
    message,
    sig,
    told,
)


def test_message_that_nothing_follows_has_no_consequence() -> None:
    assert after_success(message()) is NOTHING
    assert after_failure(message()) is NOTHING
    assert not NOTHING


def test_next_step_gets_the_result_before_its_own_arguments() -> None:
    done = message(follow={"chain": [sig("last"), sig("next", 10, kwargs={"k": 1})]})

    (step,) = after_success(done, 5).submits

    assert step.task == "next"
    assert arguments(step) == ([5, 10], {"k": 1})
    assert json.loads(step.follow or "") == {"chain": [sig("last")]}


def test_immutable_step_gets_its_own_arguments_only() -> None:
    done = message(follow={"chain": [sig("next", 10, immutable=True)]})

    (step,) = after_success(done).submits

    assert arguments(step) == ([10], {})


def test_typed_results_and_arguments_reach_the_next_step() -> None:
    when = datetime(2026, 1, 2, tzinfo=timezone.utc)
    wire = json.loads(Codec().encode_value(when)[0])
    done = message(follow={"chain": [sig("next", wire)]})

    (step,) = after_success(done, {"price": Decimal("1.50"), "raw": b"\xff"}).submits

    assert arguments(step)[0] == [{"price": Decimal("1.50"), "raw": b"\xff"}, when]


def test_result_in_another_content_type_reaches_the_next_step_unopened() -> None:
    pickling = Codec("pickle", ("pickle",))
    body, content_type = pickling.encode_value({1, 2})
    done = message(follow={"chain": [sig("next", 3)]})

    (step,) = succeeded(done, body, content_type, now=NOW).submits

    assert step.content_type == JSON
    assert pickling.decode_body(step.body, step.content_type)[0] == [{1, 2}, 3]


def test_task_without_a_value_passes_none_on() -> None:
    done = message(follow={"chain": [sig("next")]})

    (step,) = succeeded(done, None, JSON, now=NOW).submits

    assert arguments(step)[0] == [None]


def test_every_callback_runs_with_the_result() -> None:
    done = message(
        follow={"callbacks": [sig("a"), sig("b", 1, immutable=True), group(sig("c"), sig("d"))]}
    )

    submits = after_success(done, "r").submits

    assert [(m.task, arguments(m)[0]) for m in submits] == [
        ("a", ["r"]),
        ("b", [1]),
        ("c", ["r"]),
        ("d", ["r"]),
    ]


def test_error_callbacks_do_not_run_after_success() -> None:
    assert not after_success(message(follow={"errbacks": [sig("err")]}))


def test_step_is_the_child_of_the_one_before_and_of_the_same_root() -> None:
    done = message(follow={"chain": [sig("next")]}, root_id="root")

    (step,) = after_success(done).submits

    assert (step.parent_id, step.root_id) == ("t-1", "root")
    (step,) = after_success(message(follow={"chain": [sig("next")]})).submits
    assert step.root_id == "t-1"


def test_ids_come_from_the_options_else_from_the_parent_message() -> None:
    follow = {"callbacks": [sig("a", task_id="mine"), sig("a"), sig("a")]}

    named, second, third = after_success(message(follow=follow)).submits

    assert named.task_id == "mine"
    assert second.task_id == second.message_id
    assert len({named.message_id, second.message_id, third.message_id}) == 3


def test_settle_replayed_after_a_crash_makes_the_same_messages() -> None:
    follow = {
        "callbacks": [group(sig("a"), sig("b"))],
        "chain": [sig("end"), group(sig("c"), sig("d"))],
    }

    once = after_success(message(follow=follow))
    again = after_success(message(follow=follow))

    assert once == again
    other = after_success(message(follow=follow, message_id="m-2"))
    assert not {m.message_id for m in once.submits} & {m.message_id for m in other.submits}


def test_step_inherits_priority_queue_and_delivery_rules() -> None:
    done = message(
        follow={"chain": [sig("next")]},
        priority=7,
        queue="mail",
        ack=AckMode.LATE,
        max_deliveries=2,
    )

    (step,) = after_success(done).submits

    assert (step.priority, step.queue, step.ack, step.max_deliveries) == (
        7,
        "mail",
        AckMode.LATE,
        2,
    )


def test_options_of_a_step_win() -> None:
    options: dict[str, Any] = {
        "priority": -3,
        "queue": "slow",
        "ack": "on_start",
        "max_deliveries": 9,
        "countdown": 10,
        "expires": 60,
        "time_limit": 30,
        "soft_time_limit": 20,
        "rate": ["k", 0.5],
        "concurrency": ["account:1", 2],
        "ignore_result": True,
        "result_expires": 5,
        "headers": {"x-app": "1"},
    }

    (step,) = after_success(message(follow={"chain": [sig("next", **options)]}, priority=7)).submits

    assert (step.priority, step.queue, step.ack) == (-3, "slow", AckMode.ON_START)
    assert (step.max_deliveries, step.eta, step.expires_at) == (9, NOW + 10, NOW + 60)
    assert (step.time_limit, step.soft_time_limit) == (30, 20)
    assert (step.rate, step.concurrency) == (Rate("k", 0.5), ConcurrencyKey("account:1", 2))
    assert (step.store_result, step.result_expires) == (False, 5)
    assert step.headers == {"x-app": "1"}


def test_priority_and_queue_of_one_step_are_not_those_of_the_steps_behind_it() -> None:
    follow = {"chain": [sig("c"), sig("b", priority=9, queue="fast")]}

    (b,) = after_success(message(follow=follow, priority=2)).submits
    (c,) = after_success(b).submits

    assert (b.priority, b.queue) == (9, "fast")
    assert (c.priority, c.queue) == (2, "work")


def test_baked_options_make_the_same_message_again() -> None:
    original = message(
        "next",
        task_id="id",
        priority=-4,
        queue="q",
        ack=AckMode.LATE,
        max_deliveries=3,
        eta=NOW + 5,
        expires_at=NOW + 50,
        time_limit=3.0,
        soft_time_limit=2.0,
        rate=Rate("r", 1.0),
        concurrency=ConcurrencyKey("k", 2),
        store_result=False,
        result_expires=9.0,
        headers={"a": 1},
    )

    options = json.loads(json.dumps(baked_options(original)))
    (step,) = after_success(message(follow={"chain": [sig("next", **options)]})).submits

    for name in baked_options(original):
        name = {"ignore_result": "store_result"}.get(name, name)
        assert getattr(step, name) == getattr(original, name), name


@pytest.mark.parametrize(
    ("options", "eta", "expires_at"),
    [
        ({"eta": "2023-11-14T22:13:30+00:00"}, NOW + 10, None),
        ({"eta": "2023-11-14T22:13:30Z"}, NOW + 10, None),
        ({"eta": "2023-11-14T22:13:30"}, NOW + 10, None),
        ({"eta": NOW + 10}, NOW + 10, None),
        ({"expires": "2023-11-14T22:13:30+00:00"}, None, NOW + 10),
        ({"expires_at": NOW + 3, "expires": 10}, None, NOW + 3),
    ],
)
def test_times_of_a_step_are_read_in_celerys_forms(
    options: dict[str, Any], eta: float | None, expires_at: float | None
) -> None:
    (step,) = after_success(message(follow={"chain": [sig("next", **options)]})).submits

    assert (step.eta, step.expires_at) == (eta, expires_at)


def test_option_that_cannot_be_read_leaves_the_default() -> None:
    wrong: dict[str, Any] = {
        "task_id": 5,
        "priority": 99,
        "queue": [],
        "ack": "soon",
        "max_deliveries": -1,
        "countdown": "x",
        "eta": "tomorrow",
        "expires": True,
        "time_limit": -5,
        "rate": ["k", 0],
        "concurrency": ["k", True],
        "headers": "x",
        "result_expires": float(10**300) * 0,
    }

    (step,) = after_success(message(follow={"chain": [sig("next", **wrong)]}, priority=4)).submits

    assert (step.task_id, step.priority, step.queue) == (step.message_id, 4, "work")
    assert (step.ack, step.max_deliveries) == (AckMode.ON_FINISH, 5)
    assert (step.eta, step.expires_at, step.time_limit) == (None, None, None)
    assert (step.rate, step.concurrency, step.headers) == (None, None, {})


@pytest.mark.parametrize("state", [State.FAILED, State.DEAD, State.EXPIRED, State.REVOKED])
def test_steps_that_never_run_end_as_failed_and_say_why(state: State) -> None:
    follow = {"chain": [sig("c", task_id="C"), sig("b", task_id="B")]}

    then = after_failure(message("a", follow=follow), state)

    assert not then.submits
    assert [(r.task_id, r.task, r.state) for r in then.results] == [
        ("B", "b", State.FAILED),
        ("C", "c", State.FAILED),
    ]
    for record in then.results:
        assert told(record) == f"it depended on a[t-1], which is {state}: ValueError: boom"
        assert (record.ended_at, record.expires_at, record.parent_id) == (NOW, NOW + 60, "t-1")


def test_results_are_kept_as_long_as_the_step_says() -> None:
    follow = {
        "chain": [sig("b", task_id="B", result_expires=5), sig("c", task_id="C", result_expires=0)]
    }

    c, b = after_failure(message(follow=follow)).results

    assert (b.expires_at, c.expires_at) == (NOW + 5, None)


def test_step_whose_result_nobody_keeps_gets_none() -> None:
    follow = {"chain": [sig("b", task_id="B", ignore_result=True), sig("c")]}

    assert after_failure(message(follow=follow)).results == ()


def test_callbacks_that_never_run_end_as_failed_too() -> None:
    follow = {
        "callbacks": [sig("x", task_id="X", link=sig("y", task_id="Y"))],
        "chain": [sig("b", task_id="B", link=[group(sig("z", task_id="Z"))])],
    }

    assert {r.task_id for r in after_failure(message(follow=follow)).results} == {
        "B",
        "X",
        "Y",
        "Z",
    }


def test_error_callback_gets_the_id_of_the_failed_task() -> None:
    follow = {"errbacks": [sig("err", "more"), sig("quiet", immutable=True)]}

    err, quiet = after_failure(message(follow=follow, priority=6)).submits

    assert (arguments(err)[0], arguments(quiet)[0]) == (["t-1", "more"], [])
    assert err.headers == quiet.headers == {ERRBACK: "t-1"}
    assert (err.priority, err.parent_id) == (6, "t-1")


def test_error_callback_runs_once_per_failure() -> None:
    follow = {
        "errbacks": [sig("err"), sig("err"), sig("err", 1)],
        # The steps behind it carry the same callback, as a chain's on_error puts it there.
        "chain": [sig("b", link_error=sig("err"))],
    }

    then = after_failure(message(follow=follow))

    assert [arguments(m)[0] for m in then.submits] == [["t-1"], ["t-1", 1]]


def test_error_callback_of_a_later_step_runs_when_that_step_fails() -> None:
    follow = {"chain": [sig("b", task_id="B", link_error=[sig("err")])]}

    (step,) = after_success(message(follow=follow)).submits
    (err,) = after_failure(step).submits

    assert arguments(err)[0] == ["B"]


def test_failure_that_cannot_be_read_still_ends_what_depends_on_it() -> None:
    done = message("a", follow={"chain": [sig("b", task_id="B")]})

    for failure in (None, b"", b"junk", b"[]", b'{"exc_type": 1}'):
        then = ended(done, State.FAILED, failure, now=NOW, result_expires=None)
        assert told(then.results[0]) == "it depended on a[t-1], which is failed"
        assert then.results[0].expires_at is None


@pytest.mark.parametrize(
    "follow",
    [
        "not json",
        "[]",
        "null",
        '{"chain": 5}',
        '{"chain": [5, null, {}, {"task": ""}, {"task": 5}]}',
        '{"callbacks": {"no": "task"}}',
        '{"chord": {"key": "k"}}',
        '{"chord": {"key": "k", "index": 2, "size": 2, "body": {"task": "b"}}}',
        '{"chord": {"key": "k", "index": true, "size": 2, "body": {"task": "b"}}}',
        '{"chord": {"task": "celery style", "options": {"group_id": "g"}}}',
        '{"chain": [NaN]}',
        '{"chain": [{"task": "b", "args": [1e999]}]}',
        '{"chain": [{"task": "\\ud800"}]}',
        "[" * 100_000,
        '{"chain": ' + "[" * 300 + "]" * 300 + "}",
    ],
)
def test_malformed_follow_never_stops_an_ending(follow: str) -> None:
    assert not after_success(message(follow=follow))
    assert not after_failure(message(follow=follow))


@pytest.mark.parametrize(
    "step",
    [
        {"task": "b"},
        {"task": "b", "args": 5, "kwargs": [], "options": "x", "immutable": "yes"},
        {"task": "b", "subtask_type": ["chain"]},
        {"task": "b", "options": {"link": 5, "link_error": [None], "chain": {}, "chord": 3}},
    ],
)
def test_signature_with_malformed_parts_runs_without_them(step: dict[str, Any]) -> None:
    (made,) = after_success(message(follow={"chain": [step]}), 1).submits

    assert made.task == "b"
    assert arguments(made) == ([1], {})
    assert made.follow is None
