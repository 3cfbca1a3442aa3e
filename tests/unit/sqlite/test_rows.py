"""A message is read back as it was written, field by field."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmq.clock import FakeClock
from taskmq.errors import EncodeError
from taskmq.message import ConcurrencyKey, Message, Rate
from taskmq.states import AckMode
from taskmq.transports.sqlite.rows import ENCODED_COLUMNS, MESSAGE_COLUMNS, encode, to_message
from taskmq.transports.sqlite.times import micros, seconds

NOW = FakeClock().now()

text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
times = st.integers(0, 10**9).map(lambda n: NOW + n / 1000)
durations = st.floats(0.001, 1e6)
messages = st.builds(
    Message,
    message_id=text,
    task_id=text,
    task=text,
    queue=text,
    body=st.binary(max_size=50),
    priority=st.integers(-9, 9),
    content_type=st.sampled_from(["application/json", "application/x-msgpack"]),
    content_encoding=st.sampled_from(["utf-8", "binary"]),
    eta=st.none() | times,
    expires_at=st.none() | times,
    max_deliveries=st.integers(1, 100),
    ack=st.sampled_from(AckMode),
    retries=st.integers(0, 100),
    time_limit=st.none() | durations,
    soft_time_limit=st.none() | durations,
    rate=st.none() | st.builds(Rate, text, durations),
    concurrency=st.none() | st.builds(ConcurrencyKey, text, st.integers(1, 9)),
    follow=st.none() | text,
    parent_id=st.none() | text,
    root_id=st.none() | text,
    store_result=st.booleans(),
    result_expires=st.none() | durations,
    headers=st.dictionaries(text, st.none() | st.integers() | text, max_size=3),
)


def stored(message: Message) -> Message:
    row = dict(zip(ENCODED_COLUMNS.split(", "), encode(message).columns, strict=True), lane=7)
    rate_key = None if message.rate is None else message.rate.key
    return to_message(
        [row[name] for name in MESSAGE_COLUMNS.split(", ")], lambda lane: (message.queue, rate_key)
    )


@given(messages)
def test_every_field_comes_back(message: Message) -> None:
    found = stored(message)

    for field in fields(Message):
        assert getattr(found, field.name) == getattr(message, field.name), field.name


def test_the_usual_message_needs_no_extra_column() -> None:
    message = Message(
        message_id="m", task_id="m", root_id="m", task="t", queue="q", body=b"[]", priority=3
    )

    assert encode(message).columns[-1] is None
    assert encode(message).columns[1] is None


def test_headers_that_are_no_json_are_named() -> None:
    message = Message(
        message_id="m", task_id="m", task="t", queue="q", body=b"", headers={"x": object()}
    )

    with pytest.raises(EncodeError, match="headers of t m"):
        encode(message)


@given(st.floats(0, 4e9))
def test_times_keep_their_order_as_microseconds(at: float) -> None:
    assert micros(at) <= micros(at + 0.000002)
    assert abs(seconds(micros(at)) - at) <= 1e-6


def test_what_is_due_now_is_due_in_the_file_too() -> None:
    # Truncating would make this a microsecond early or late.
    at = 1_700_000_000.3

    assert micros(at) == 1_700_000_000_300_000
    assert seconds(None) is None
