"""Envelopes that are wrong somewhere: a `DecodeError` that names what, or a message (row 34)."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmq.errors import DecodeError
from taskmq.wire import Scale, from_protocol2, to_protocol2
from tests.unit.wire.envelopes import BODY, HEADERS, QUICK, SCALES, read


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
