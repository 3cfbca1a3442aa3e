"""Our own messages through Celery's envelope, and envelopes that are wrong (reliability row 34)."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.codec import Codec
from taskmq.errors import DecodeError
from taskmq.message import ConcurrencyKey, Message, Rate
from taskmq.states import AckMode
from taskmq.wire import Scale, from_protocol2, project_priority, to_protocol2

QUICK = settings(max_examples=100, deadline=None)
SCALES: list[Scale] = ["amqp", "redis"]
BODY = Codec().encode_body((1,), {})[0]

HEADERS = {"task": "a", "id": "t"}
PROPERTIES = {"content_type": "application/json", "content_encoding": "utf-8", "priority": 0}


def read(headers: Any = None, properties: Any = None, *, scale: Scale = "amqp") -> Message:
    return from_protocol2(
        {**HEADERS, **(headers or {})},
        {**PROPERTIES, **(properties or {})},
        BODY,
        queue="q",
        scale=scale,
    )


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


def test_time_without_an_offset_is_utc() -> None:
    naive, zulu = read({"eta": "2030-01-02T03:04:05"}), read({"eta": "2030-01-02T03:04:05Z"})

    assert naive.eta == zulu.eta == datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc).timestamp()


WRONG: list[tuple[str, Any]] = [
    ("task", None),
    ("task", ""),
    ("task", 5),
    ("task", "a\nb"),
    ("task", "a\x1b[31m"),
    ("task", "x" * 256),
    ("task", "\ud800"),
    ("id", None),
    ("id", 5),
    ("id", ["t"]),
    ("id", "a\x00b"),
    ("id", "\udfff"),
    ("id", "x" * 256),
    ("eta", "x"),
    ("eta", "tomorrow"),
    ("eta", 1700000000),
    ("eta", "2026-13-01T00:00:00"),
    ("expires", {}),
    ("expires", "99999-01-01T00:00:00"),
    ("retries", -1),
    ("retries", 1.5),
    ("retries", True),
    ("retries", "1"),
    ("retries", 2**31),
    ("timelimit", 5),
    ("timelimit", [1]),
    ("timelimit", [1, 2, 3]),
    ("timelimit", [float("nan"), None]),
    ("timelimit", [None, float("inf")]),
    ("timelimit", [-1, None]),
    ("timelimit", ["30", None]),
    ("timelimit", [True, None]),
    ("root_id", 5),
    ("parent_id", ""),
    ("ignore_result", "yes"),
    ("ignore_result", 1),
    ("taskmq-priority", 10),
    ("taskmq-priority", "5"),
    ("taskmq-priority", True),
    ("taskmq-priority", 1.0),
    ("taskmq-message-id", 5),
    ("taskmq-max-deliveries", 0),
    ("taskmq-ack", "never"),
    ("taskmq-ack", 5),
    ("taskmq-rate", "10/m"),
    ("taskmq-rate", ["k", 0]),
    ("taskmq-rate", [5, 1]),
    ("taskmq-rate", ["", 1]),
    ("taskmq-concurrency", ["k"]),
    ("taskmq-concurrency", ["k", 0]),
    ("taskmq-concurrency", ["k", True]),
    ("taskmq-result-expires", -1),
    ("taskmq-concurrency", ["k", 2**31]),
    ("taskmq-concurrency", ["k" * 256, 1]),
    ("taskmq-rate", ["k", 10**400]),
    ("taskmq-rate", ["k" * 256, 1]),
    ("taskmq-result-expires", float("nan")),
    ("taskmq-result-expires", 10**400),
    ("taskmq-result-expires", 1e300),
    ("timelimit", [10**400, None]),
    ("eta", "0001-01-01T00:00:00+23:59"),
    ("expires", "9999-12-31T23:59:59-23:59"),
    ("taskmq-follow", {"chain": []}),
    ("taskmq-follow", "[]"),
    ("taskmq-follow", "junk"),
    ("taskmq-follow", "[" * 100_000),
    ("x-app", float("nan")),
    ("x-app", object()),
    ("x-app", {"a": "\ud800"}),
]


@pytest.mark.parametrize(
    ("name", "value"), WRONG, ids=lambda v: ascii(v).partition(" at 0x")[0][:30]
)
def test_wrong_header_is_a_decode_error_that_names_it(name: str, value: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        read({name: value})

    text_ = str(caught.value)
    assert text_.startswith(f"header {name!r}: ")
    assert ascii(value)[:20] in text_
    assert len(text_) < 300
    assert text_.isprintable()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content_type", 5),
        ("content_type", []),
        ("content_type", "\ud800"),
        ("content_type", "x" * 256),
        ("content_encoding", ["utf-8"]),
        ("content_encoding", "a\x00b"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_wrong_property_is_a_decode_error_that_names_it(name: str, value: Any) -> None:
    with pytest.raises(DecodeError, match=rf"^property '{name}': text of 1 to 255 characters, got"):
        read(properties={name: value})


@pytest.mark.parametrize("broker_s", ["\ud800", "a\x00b", "x" * 256, "", 5])
def test_an_id_of_the_broker_that_no_store_keeps_is_not_taken(broker_s: Any) -> None:
    message = read(properties={"message_id": broker_s, "delivery_tag": "tag"})

    assert message.message_id == "tag"
    assert len(read(properties={"message_id": broker_s}).message_id) == 26


@pytest.mark.parametrize("options", [5, "x", [1], True])
def test_a_chord_s_body_with_options_of_another_shape_is_written(options: Any) -> None:
    chord = {"key": "k", "index": 0, "size": 1, "body": {"task": "c", "options": options}}
    message = read({"taskmq-follow": json.dumps({"chord": chord})})

    _, _, body = to_protocol2(message)

    assert json.loads(body)[2]["chord"]["options"] == {"group_id": "k"}


def test_header_name_that_is_no_text_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="a header's name is text"):
        read({5: "x"})


_anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=5)
    | st.sampled_from(["2030-01-01T00:00:00", "late", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@given(
    st.dictionaries(st.sampled_from(sorted({name for name, _ in WRONG})), _anything),
    st.dictionaries(
        st.sampled_from(["priority", "content_type", "delivery_tag", "reply_to", "message_id"]),
        _anything,
    ),
    st.sampled_from(SCALES),
)
@QUICK
def test_any_envelope_is_a_message_or_a_decode_error(
    headers: dict[str, Any], properties: dict[str, Any], scale: Scale
) -> None:
    try:
        message = from_protocol2({**HEADERS, **headers}, properties, BODY, queue="q", scale=scale)
    except DecodeError:
        return
    assert -9 <= message.priority <= 9
    json.dumps(dict(message.headers), allow_nan=False)
    written = to_protocol2(message, scale=scale)
    assert from_protocol2(*written, queue="q", scale=scale).task_id == message.task_id
