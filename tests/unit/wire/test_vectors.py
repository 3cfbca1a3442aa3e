"""Messages captured from Celery 5.7 on Redis and RabbitMQ are read, and written again as they came."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from taskmq.codec import Codec
from taskmq.errors import ContentRefused
from taskmq.message import Message
from taskmq.wire import from_protocol2, to_protocol2
from tests.unit.wire.vectors import Vector, load

VECTORS = load()
BY_NAME = {vector.name: vector for vector in VECTORS}
CODEC = Codec()


def read(vector: Vector) -> Message:
    return from_protocol2(
        vector.headers, vector.properties, vector.body, queue=vector.queue, scale=vector.scale
    )


def each(*, decoded: bool = False) -> pytest.MarkDecorator:
    vectors = [v for v in VECTORS if v.decoded is not None] if decoded else VECTORS
    return pytest.mark.parametrize("vector", vectors, ids=lambda v: v.name)


def test_all_captured_task_messages_are_here() -> None:
    assert len(VECTORS) >= 36
    assert {v.scale for v in VECTORS} == {"redis", "amqp"}


@each()
def test_message_is_read_whole(vector: Vector) -> None:
    message = read(vector)

    assert message.task == vector.headers["task"]
    assert message.task_id == vector.headers["id"]
    assert message.root_id == vector.headers["root_id"]
    assert message.parent_id == vector.headers["parent_id"]
    assert message.retries == vector.headers["retries"]
    assert message.store_result is not vector.headers["ignore_result"]
    assert message.queue == vector.queue
    assert message.body == vector.body
    assert message.follow is None, "what a foreign body carries is known once a child decodes it"


@each()
def test_message_is_written_again_as_it_came(vector: Vector) -> None:
    headers, properties, body = to_protocol2(read(vector), scale=vector.scale)

    # send_task leaves `ignore_result` null, which means false.
    came = {**vector.headers, "ignore_result": bool(vector.headers["ignore_result"])}
    assert {name: headers[name] for name in came} == came
    assert all(name.startswith("taskmq-") for name in headers.keys() - vector.headers.keys())
    assert body == vector.body
    for name in ("content_type", "content_encoding", "correlation_id", "reply_to", "delivery_mode"):
        assert properties[name] == vector.properties[name]
    assert "expiration" not in properties


@each()
def test_message_survives_the_way_through_our_own_envelope(vector: Vector) -> None:
    message = read(vector)

    headers, properties, body = to_protocol2(message, scale=vector.scale)

    assert (
        from_protocol2(headers, properties, body, queue=vector.queue, scale=vector.scale) == message
    )


@each(decoded=True)
def test_body_is_decoded_as_celery_decodes_it(vector: Vector) -> None:
    message = read(vector)

    decoded = CODEC.decode_body(message.body, message.content_type, message.content_encoding)

    assert list(decoded) == vector.decoded


@each(decoded=True)
def test_body_is_encoded_as_celery_encodes_it(vector: Vector) -> None:
    args, kwargs, embed = vector.decoded

    body, content_type, encoding = CODEC.encode_body(args, kwargs, embed)

    assert CODEC.decode_body(body, content_type, encoding) == (args, kwargs, embed)
    assert content_type == vector.properties["content_type"]
    assert encoding == vector.properties["content_encoding"]


@pytest.mark.parametrize(
    ("name", "priority"),
    [
        ("10_priority-0", 0),  # the producer named none: 0 on the wire
        ("10_priority-1", 0),
        ("10_priority-2", -1),
        ("10_priority-3", 0),  # -1
        ("10_priority-4", -3),
        ("10_priority-5", -5),
        ("10_priority-6", -6),
        ("10_priority-7", -9),
        ("10_priority-8", -9),  # 10
        ("32_amqp_priority-0", 0),
        ("32_amqp_priority-1", 0),
        ("32_amqp_priority-2", 5),
        ("32_amqp_priority-3", 9),
    ],
)
def test_celerys_priorities_keep_their_order_and_their_default(name: str, priority: int) -> None:
    assert read(BY_NAME[name]).priority == priority


def test_times_are_epoch_seconds() -> None:
    eta = datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone.utc).timestamp()

    assert read(BY_NAME["03_eta-0"]).eta == eta
    assert read(BY_NAME["04_expires-0"]).expires_at == pytest.approx(1796057583.379512)


def test_limits_shadow_and_own_headers_are_kept() -> None:
    message = read(BY_NAME["13_timelimit_shadow_headers-0"])

    assert (message.time_limit, message.soft_time_limit) == (30, 20)
    assert message.headers["shadow"] == "nice.name"
    assert message.headers["x-app"] == "1"


def test_headers_that_say_nothing_are_not_kept() -> None:
    kept = set(read(BY_NAME["01_simple-0"]).headers)

    assert kept == {"argsrepr", "kwargsrepr", "origin", "taskmq-reply-to"}


def test_stamps_are_kept() -> None:
    headers = read(BY_NAME["12_stamps-0"]).headers

    assert headers["stamps"] == {"tenant": "acme"}
    assert headers["stamped_headers"] == ["tenant"]


def test_compressed_body_is_unpacked_by_its_header() -> None:
    message = read(BY_NAME["14_zlib-0"])

    args, _, _ = CODEC.decode_body(
        message.body, message.content_type, compression=message.headers["compression"]
    )

    assert args == [1, 2]


def test_pickled_body_is_read_as_bytes_and_refused_unopened() -> None:
    message = read(BY_NAME["11_pickle-0"])

    assert message.content_type == "application/x-python-serialize"
    with pytest.raises(ContentRefused):
        CODEC.decode_body(message.body, message.content_type, message.content_encoding)


def test_message_id_is_the_brokers_where_the_producer_made_none() -> None:
    vector = BY_NAME["01_simple-0"]

    assert read(vector).message_id == vector.properties["delivery_tag"]
    amqp = BY_NAME["31_amqp_simple-0"]
    assert read(amqp).message_id != read(amqp).message_id
