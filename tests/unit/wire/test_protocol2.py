"""Our own messages through Celery's envelope, and envelopes that are wrong (reliability row 34)."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmq.message import ConcurrencyKey, Message, Rate
from taskmq.states import AckMode
from taskmq.wire import Scale, from_protocol2, project_priority, to_protocol2
from tests.unit.wire.envelopes import BODY, HEADERS, PROPERTIES, QUICK, SCALES, read

text = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), min_size=1, max_size=20
)
spans = st.floats(0.001, 1e6)
moments = st.integers(0, 4_000_000_000_000_000).map(lambda microseconds: microseconds / 1e6)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


messages = st.builds(
    Message,
    message_id=text,
    task_id=text,
    task=text,
    queue=st.just("q"),
    body=st.just(BODY),
    priority=st.integers(-9, 9),
    eta=maybe(moments),
    expires_at=maybe(moments),
    max_deliveries=st.integers(1, 100),
    ack=st.sampled_from(AckMode),
    retries=st.integers(0, 100),
    time_limit=maybe(spans),
    soft_time_limit=maybe(spans),
    rate=maybe(st.builds(Rate, text, spans)),
    concurrency=maybe(st.builds(ConcurrencyKey, text, st.integers(1, 10))),
    parent_id=maybe(text),
    root_id=text,
    store_result=st.booleans(),
    result_expires=maybe(spans),
    headers=st.dictionaries(
        st.sampled_from(["x-app", "tenant", "taskmq-reply-to"]), text, max_size=3
    ),
)


@given(messages, st.sampled_from(SCALES))
@QUICK
def test_every_message_survives_the_envelope(message: Message, scale: Scale) -> None:
    headers, properties, body = to_protocol2(message, scale=scale)

    json.dumps([headers, properties], allow_nan=False)
    back = from_protocol2(headers, properties, body, queue=message.queue, scale=scale)
    for name in ("eta", "expires_at"):
        assert getattr(back, name) == pytest.approx(getattr(message, name), abs=1e-5)
    assert _without_times(back) == _without_times(message)


def _without_times(message: Message) -> Message:
    from dataclasses import replace

    return replace(message, eta=None, expires_at=None)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("priority", range(-9, 10))
def test_exact_priority_survives_on_both_scales(priority: int, scale: Scale) -> None:
    message = read(
        {"taskmq-priority": priority}, {"priority": project_priority(priority, scale)}, scale=scale
    )

    assert message.priority == priority
    assert 0 <= to_protocol2(message, scale=scale)[1]["priority"] <= 9


def test_larger_is_more_urgent_at_the_right_end_of_each_scale() -> None:
    assert [project_priority(p, "amqp") for p in (-9, -1, 0, 1, 9)] == [0, 0, 0, 1, 9]
    assert [project_priority(p, "redis") for p in (-9, -1, 0, 1, 9)] == [9, 1, 0, 0, 0]


def test_wire_priority_that_somebody_changed_has_the_last_word() -> None:
    """A Celery worker's retry(priority=7) repeats our header and sets another priority."""
    assert read({"taskmq-priority": 3}, {"priority": 7}).priority == 7
    assert read({"taskmq-priority": -3}, {"priority": 7}, scale="redis").priority == -7


@pytest.mark.parametrize(
    ("value", "on_amqp", "on_redis"),
    [
        (None, 0, 0),
        (10, 9, -9),
        (255, 9, -9),
        (-1, 0, 0),
        (1e9, 9, -9),
        ("5", 5, -5),
        ("x", 0, 0),
        (2.7, 2, -2),
        (True, 1, -1),
        ([], 0, 0),
        ({"a": 1}, 0, 0),
        (float("inf"), 0, 0),
        (float("nan"), 0, 0),
    ],
)
def test_foreign_priority_is_read_as_kombu_reads_it(
    value: Any, on_amqp: int, on_redis: int
) -> None:
    assert read(properties={"priority": value}).priority == on_amqp
    assert read(properties={"priority": value}, scale="redis").priority == on_redis


def test_chain_and_callbacks_are_in_the_body_for_celerys_workers() -> None:
    step = {"task": "b", "args": [1], "kwargs": {}, "options": {"task_id": "B"}, "immutable": False}
    follow = json.dumps({"chain": [step], "callbacks": [step], "errbacks": [step]})
    message = read({"taskmq-follow": follow})

    headers, _, body = to_protocol2(message)

    assert json.loads(body)[:2] == [[1], {}]
    assert json.loads(body)[2] == {
        "callbacks": [step],
        "errbacks": [step],
        "chain": [step],
        "chord": None,
    }
    assert headers["taskmq-follow"] == follow


def test_chord_is_in_the_body_in_celerys_form() -> None:
    body_sig = {"task": "total", "args": [], "kwargs": {}, "options": {"task_id": "T"}}
    chord = {"key": "k", "index": 1, "size": 3, "body": body_sig}
    message = read({"taskmq-follow": json.dumps({"chord": chord})})

    headers, _, body = to_protocol2(message)

    assert json.loads(body)[2]["chord"] == {
        **body_sig,
        "options": {"task_id": "T", "group_id": "k"},
        "chord_size": 3,
    }
    assert (headers["group"], headers["group_index"]) == ("k", 1)


def test_body_that_is_not_our_json_is_left_as_it_is() -> None:
    message = Message(
        message_id="m",
        task_id="t",
        task="a",
        queue="q",
        body=b"\x80\x04",
        content_type="application/x-python-serialize",
        content_encoding="binary",
        follow='{"chain":[{"task":"b"}]}',
    )

    headers, properties, body = to_protocol2(message)

    assert body == b"\x80\x04"
    assert headers["taskmq-follow"] == message.follow
    assert from_protocol2(headers, properties, body, queue="q").follow == message.follow


def test_what_follows_survives_a_second_way_through_the_envelope() -> None:
    message = read({"taskmq-follow": '{"chain":[{"task":"b"}]}'})
    headers, properties, body = to_protocol2(message)

    again = to_protocol2(from_protocol2(headers, properties, body, queue="q"))

    assert again == (headers, properties, body)


def test_no_arguments_are_shown_in_headers() -> None:
    headers, _, _ = to_protocol2(read())

    assert not {"argsrepr", "kwargsrepr"} & headers.keys()


def test_header_objects_of_amqp_become_json_values() -> None:
    when = datetime(2026, 1, 2, tzinfo=timezone.utc)

    message = read({"x-death": [{"time": when, "count": 1}], "raw": b"\xff"})

    json.dumps(dict(message.headers))
    assert message.headers["x-death"][0]["count"] == 1


def test_unset_rules_come_from_the_reader() -> None:
    message = from_protocol2(
        HEADERS, PROPERTIES, BODY, queue="q", ack=AckMode.ON_START, max_deliveries=9
    )

    assert (message.ack, message.max_deliveries) == (AckMode.ON_START, 9)
    named = from_protocol2(
        {**HEADERS, "taskmq-ack": "late", "taskmq-max-deliveries": 2},
        PROPERTIES,
        BODY,
        queue="q",
        ack=AckMode.ON_START,
    )
    assert (named.ack, named.max_deliveries) == (AckMode.LATE, 2)


def test_zero_is_no_time_limit_as_in_celery() -> None:
    message = read({"timelimit": [0, 0]})

    assert (message.time_limit, message.soft_time_limit) == (None, None)
