"""Headers of any type on the whole way: envelope, store, worker (reliability row 34, I1 I10)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import taskmq.testing
from taskmq import App, State
from taskmq.errors import DecodeError
from taskmq.message import Message
from taskmq.wire import from_protocol2

_text = st.text(max_size=8)
_odd = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | _text
    | st.binary(max_size=4)
    | st.lists(st.integers() | _text, max_size=3)
    | st.dictionaries(_text, st.integers(), max_size=2)
    | st.sampled_from(["\ud800", "a\x00b", "x" * 256, 10**400, 2**31, 2**63, 1e300, -1, object()])
)
_span = st.none() | st.integers(0, 100) | st.floats(0, 1e6)


def mostly(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What the protocol says, or anything."""
    return right | _odd


#: Every header the protocol gives a meaning, and what it may be.
SCHEMA: dict[str, st.SearchStrategy[Any]] = {
    "task": st.just("jobs.work") | _text,
    "id": _text,
    "eta": st.datetimes().map(datetime.isoformat) | st.just("0001-01-01T00:00:00+10:00"),
    "expires": st.datetimes().map(datetime.isoformat) | st.just("9999-12-31T23:59:59-10:00"),
    "retries": st.integers(0, 5),
    "timelimit": st.tuples(_span, _span).map(list),
    "group": _text,
    "group_index": st.integers(0, 5),
    "root_id": _text,
    "parent_id": _text,
    "ignore_result": st.booleans(),
    "compression": st.sampled_from(["zlib", "xz"]),
    "taskmq-priority": st.integers(-12, 12),
    "taskmq-message-id": _text,
    "taskmq-max-deliveries": st.integers(1, 5),
    "taskmq-ack": st.sampled_from(["on_start", "on_finish", "late"]),
    "taskmq-rate": st.tuples(_text, _span).map(list),
    "taskmq-concurrency": st.tuples(_text, st.integers(0, 3)).map(list),
    "taskmq-result-expires": _span,
    "taskmq-follow": st.sampled_from(['{"chain": [{"task": "jobs.work"}]}', "{}", "[1]", "{"]),
    "x-anything": _odd,
}
HEADERS = st.fixed_dictionaries(
    {"task": mostly(SCHEMA["task"]), "id": st.uuids().map(str) | mostly(SCHEMA["id"])},
    optional={name: mostly(right) for name, right in SCHEMA.items() if name not in ("task", "id")},
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "priority": mostly(st.integers(0, 9)),
        "content_type": mostly(st.just("application/json")),
        "content_encoding": mostly(st.just("utf-8")),
        "message_id": _odd,
        "delivery_tag": _odd,
        "reply_to": _odd,
    },
)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("headers")
    made = taskmq.testing.app(broker_url=f"sqlite:///{folder}/q.db", max_deliveries=2)
    made.task(name="jobs.work")(lambda *args, **kwargs: None)
    yield made
    made.close()


@given(HEADERS, PROPERTIES)
@example({"task": "jobs.work", "id": "a", "timelimit": [math.nan, None]}, {})
@example({"task": "jobs.work", "id": "b", "taskmq-concurrency": ["k", 2**63]}, {})
@example({"task": "jobs.work", "id": "c", "taskmq-rate": ["k", 1e300]}, {})
@example({"task": "jobs.work", "id": "d"}, {"message_id": "\ud800"})
@settings(max_examples=200, deadline=None)
def test_any_envelope_is_refused_naming_the_header_or_goes_its_way_and_the_next_task_runs(
    app: App, headers: dict[str, Any], properties: dict[str, Any]
) -> None:
    queue = app.config.default_queue
    try:
        message = from_protocol2(headers, properties, b"[[],{},{}]", queue=queue)
        refused = ""
    except DecodeError as exc:
        refused = str(exc)
    if refused:
        assert refused.startswith(("header", "property", "a header's name"))
        assert refused.isprintable()
        return
    assert_nothing_was_changed(message, headers)
    app.publish([message])
    good = app.submit("jobs.work")

    with taskmq.testing.worker(app) as w:
        w.run_until_idle()

    assert good.state is State.SUCCEEDED
    assert all(
        letter.reason in ("unreadable", "unknown-task")
        for letter in app.transport.operators.dead_letters()
    )


def assert_nothing_was_changed(message: Message, headers: dict[str, Any]) -> None:
    """A value is taken as it is or refused: none is clamped, cut or replaced."""
    assert (message.task, message.task_id) == (headers["task"], headers["id"])
    for name, value in (
        ("retries", message.retries),
        ("taskmq-max-deliveries", message.max_deliveries),
        ("root_id", message.root_id),
        ("parent_id", message.parent_id),
        ("taskmq-message-id", message.message_id),
        ("taskmq-result-expires", message.result_expires),
        ("taskmq-follow", message.follow),
    ):
        if headers.get(name) is not None:
            assert value == headers[name]
    if headers.get("timelimit") is not None:
        # 0 is none, as in Celery.
        limits = [message.time_limit or 0, message.soft_time_limit or 0]
        assert limits == [limit or 0 for limit in headers["timelimit"]]
    for name, pair in (("taskmq-rate", message.rate), ("taskmq-concurrency", message.concurrency)):
        if headers.get(name) is not None:
            assert pair is not None
            assert list(pair) == list(headers[name])
    if headers.get("taskmq-priority") is not None:
        assert -9 <= headers["taskmq-priority"] <= 9
