"""Frames: what goes in comes out, and nothing a child writes can hurt the coordinator (I10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskmq.errors import DecodeError, EncodeError
from taskmq.message import ConcurrencyKey, Message, Rate
from taskmq.pools import frames
from taskmq.pools.base import Completion, Ending, Job
from taskmq.states import AckMode

JOB = Job(
    number=5,
    message=Message(
        message_id="m",
        task_id="té\u2028\ud800",
        task="jobs.work",
        queue="q",
        body=b"\x00\xff raw",
        priority=-9,
        eta=1.5,
        expires_at=2.5,
        ack=AckMode.LATE,
        retries=3,
        rate=Rate("r", 0.25),
        concurrency=ConcurrencyKey("c", 2),
        follow='{"chain":[]}',
        store_result=False,
        headers={"a": [1, {"b": None}]},
    ),
    deliveries=2,
    worker="w",
    soft_time_limit=1.0,
    time_limit=2.0,
)
COMPLETION = Completion(
    number=5,
    ending=Ending.RETRY,
    body=b"\x00failure",
    error="E",
    traceback="T",
    delay=1.5,
    priority=3,
    new_body=b"\xffnew",
    follow="{}",
    children=("a", "b"),
    reason="because",
    recycle=True,
    runtime=0.5,
)


def read(data: bytes, *, from_child: bool) -> list[frames.Frame]:
    return list(frames.FrameReader(from_child=from_child).feed(data))


def test_a_job_comes_out_as_it_went_in() -> None:
    (frame,) = read(frames.pack_job(JOB), from_child=False)
    assert frames.job_of(frame) == JOB


def test_a_completion_comes_out_as_it_went_in() -> None:
    (frame,) = read(frames.pack_completion(COMPLETION), from_child=True)
    assert frames.completion_of(frame) == COMPLETION


@pytest.mark.parametrize(
    ("body", "new_body"), [(None, None), (b"", None), (None, b""), (b"", b"x")]
)
def test_no_body_and_an_empty_one_differ(body: bytes | None, new_body: bytes | None) -> None:
    completion = Completion(number=1, ending=Ending.RETRY, body=body, new_body=new_body)
    (frame,) = read(frames.pack_completion(completion), from_child=True)
    assert frames.completion_of(frame) == completion


@given(st.lists(st.integers(min_value=1, max_value=40)))
def test_frames_survive_any_cutting_of_the_stream(cuts: list[int]) -> None:
    stream = frames.pack_completion(COMPLETION) * 3
    reader = frames.FrameReader(from_child=True)
    found = []
    at = 0
    for cut in [*cuts, len(stream)]:
        found += [frames.completion_of(f) for f in reader.feed(stream[at : at + cut])]
        at += cut
    assert found == [COMPLETION] * 3


@given(st.binary(max_size=200))
def test_garbage_from_a_child_is_waited_for_or_refused(data: bytes) -> None:
    try:
        for frame in read(data, from_child=True):
            frames.completion_of(frame)
    except DecodeError:
        pass


@given(
    st.dictionaries(
        st.sampled_from(
            ["n", "e", "body", "delay", "children", "traceback", "runtime", "priority"]
        ),
        st.none()
        | st.integers()
        | st.text("ab5", max_size=3)
        | st.lists(st.integers(), max_size=2),
    )
)
def test_a_completion_of_wrong_types_is_refused(meta: dict[str, object]) -> None:
    frame = frames.Frame(frames.DONE, meta, b"body")
    try:
        completion = frames.completion_of(frame)
    except DecodeError:
        return
    assert isinstance(completion.number, int)
    assert isinstance(completion.delay, (int, float))
    assert isinstance(completion.error, str)


def test_a_child_cannot_send_what_only_the_coordinator_sends() -> None:
    with pytest.raises(DecodeError, match="kind"):
        read(frames.pack(frames.EXIT), from_child=True)


@pytest.mark.timeout(20)
def test_a_large_frame_in_many_pieces_is_put_together_once() -> None:
    """Copied anew with every piece, these would be half a terabyte."""
    sent = memoryview(frames.pack(frames.DONE, {"n": 1}, b"x" * (64 << 20)))
    reader = frames.FrameReader(from_child=True)
    found = [
        frame
        for at in range(0, len(sent), 4_096)
        for frame in reader.feed(bytes(sent[at : at + 4_096]))
    ]
    assert [len(frame.body) for frame in found] == [64 << 20]
    assert [f.kind for f in reader.feed(frames.pack(frames.READY))] == [frames.READY]


@given(st.lists(st.binary(max_size=200), max_size=6), st.integers(1, 40))
def test_frames_come_out_whole_however_they_are_cut(bodies: list[bytes], size: int) -> None:
    stream = b"".join(frames.pack(frames.DONE, n, body) for n, body in enumerate(bodies))
    reader = frames.FrameReader(from_child=True)
    found = [f for at in range(0, len(stream), size) for f in reader.feed(stream[at : at + size])]
    assert [(f.meta, f.body) for f in found] == list(enumerate(bodies))


@pytest.mark.parametrize(
    "wrong",
    [{"label": 5}, {"label": None}, {"reason": b"x"}, {"traceback": "x" * (frames.MAX_META + 1)}],
    ids=["label int", "label None", "reason bytes", "huge"],
)
def test_a_completion_that_would_be_refused_is_not_packed(wrong: dict[str, Any]) -> None:
    with pytest.raises(EncodeError):
        frames.pack_completion(Completion(number=1, ending=Ending.SUCCEEDED, **wrong))


def test_a_job_with_a_large_envelope_reaches_the_child() -> None:
    message = replace(JOB.message, follow="x" * (frames.MAX_META + 1))
    (frame,) = read(frames.pack_job(replace(JOB, message=message)), from_child=False)
    assert frames.job_of(frame).message.follow == message.follow


def test_a_plain_success_is_a_small_frame_and_comes_back_as_it_was() -> None:
    plain = Completion(number=7, ending=Ending.SUCCEEDED, body=b"[1,2]", runtime=0.25)
    (frame,) = read(frames.pack_completion(plain), from_child=True)

    assert frame.kind == frames.SUCCEEDED
    assert frames.completion_of(frame) == plain


@pytest.mark.parametrize(
    "more",
    [
        {"content_type": "application/x-msgpack"},
        {"children": ("a",)},
        {"follow": "{}"},
        {"recycle": True},
        {"body": None},
        {"label": "PROGRESS"},
        {"error": "odd"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_a_success_with_more_to_say_of_it_loses_nothing(more: dict[str, Any]) -> None:
    completion = Completion(
        **{"number": 7, "ending": Ending.SUCCEEDED, "body": b"1", "runtime": 0.5, **more}
    )
    (frame,) = read(frames.pack_completion(completion), from_child=True)

    assert frames.completion_of(frame) == completion


def test_a_success_of_the_wrong_length_is_no_frame() -> None:
    header = frames.pack(frames.SUCCEEDED, 1)
    with pytest.raises(DecodeError, match="no frame"):
        read(header, from_child=True)
