"""What travels between the coordinator and a pool child: length-prefixed frames, never pickle.

A frame is a header (kind, length of meta, length of body), meta and raw bytes. Bodies and results pass
through as they are. What a child sends is checked, and is JSON but for the plain success: user code in it
may have written anything to any descriptor, and no content may end the supervisor (I10). A job is marshalled,
which takes a third of the time; a child trusts what its coordinator sends.
"""

from __future__ import annotations

import json
import marshal
import struct
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from taskmq.errors import DecodeError, EncodeError
from taskmq.message import JSON, ConcurrencyKey, Message, Rate
from taskmq.pools.base import Completion, Ending, Job
from taskmq.states import AckMode

_HEADER = struct.Struct(">BII")

# to a child
JOB = 1
CANCEL = 2
EXIT = 3
SETUP = 4
# from a child
READY = 16
DONE = 17
SUCCEEDED = 18  # the plain case of DONE: a JSON value and nothing else to say of it

_FROM_CHILD = frozenset({READY, DONE, SUCCEEDED})
_PLAIN_SUCCESS = struct.Struct(">Qd")  # number of the job, runtime
_TO_CHILD = frozenset({JOB, CANCEL, EXIT, SETUP})
# Meta holds a task's name, headers, a traceback cut to 64 KiB and the like. The bound on bodies only keeps
# a broken length from being waited for; `max_body` is checked where bodies are made.
MAX_META = 16 * 1024 * 1024
MAX_BODY = 1 << 31

# Read at once: small frames need little, and a buffer above some 100 KiB is mapped and unmapped each time.
_READ = 16 * 1024
_READ_LARGE = 256 * 1024

_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode
_loads = json.JSONDecoder().decode


class Frame(NamedTuple):
    """One frame; `meta` is a JSON value."""

    kind: int
    meta: Any
    body: bytes


def pack(kind: int, meta: Any = None, body: bytes = b"") -> bytes:
    """The bytes of a frame."""
    return _framed(kind, _encode(meta).encode(), body)


def _framed(kind: int, meta: bytes, body: bytes) -> bytes:
    return _HEADER.pack(kind, len(meta), len(body)) + meta + body


class FrameReader:
    """Cuts a stream of bytes into frames."""

    __slots__ = ("_kinds", "_max_meta", "_needed", "_rest")

    def __init__(self, *, from_child: bool) -> None:
        self._rest = bytearray()
        # How many bytes there must be before there is anything to cut.
        self._needed = _HEADER.size
        self._kinds = _FROM_CHILD if from_child else _TO_CHILD
        # What the coordinator sends was let in by the transport, whatever its size.
        self._max_meta = MAX_META if from_child else MAX_BODY

    @property
    def room(self) -> int:
        """How many bytes to ask for next."""
        return _READ if self._needed <= _READ else _READ_LARGE

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes; the frames that are complete now. Raises `DecodeError` for what is none."""
        if self._rest:
            # A large frame comes in many pieces: they are put together once, when all are there.
            self._rest += data
            if len(self._rest) < self._needed:
                return []
            data = bytes(self._rest)
        found = []
        start, end = 0, len(data)
        needed = _HEADER.size
        while end - start >= _HEADER.size:
            kind, meta_size, body_size = _HEADER.unpack_from(data, start)
            if kind not in self._kinds or meta_size > self._max_meta or body_size > MAX_BODY:
                raise DecodeError(f"no frame: kind {kind}, lengths {meta_size} and {body_size}")
            body_at = start + _HEADER.size + meta_size
            if body_at + body_size > end:
                needed = body_at + body_size - start
                break
            meta = _decode(kind, data[start + _HEADER.size : body_at])
            start = body_at + body_size
            found.append(Frame(kind, meta, data[body_at:start]))
        if start < end or self._rest:
            self._rest = bytearray(data[start:])
        self._needed = needed
        return found


def _decode(kind: int, text: bytes) -> Any:
    try:
        if kind == SUCCEEDED:
            return _PLAIN_SUCCESS.unpack(text)
        if kind == JOB:
            return marshal.loads(text)  # noqa: S302 - never from a child: its reader lets no JOB in
        return _loads(text.decode())
    except (ValueError, TypeError, EOFError, RecursionError, struct.error) as exc:
        raise DecodeError(f"no frame: {exc}") from None


# -- jobs -----------------------------------------------------------------------------------------

_PLAIN = (
    "message_id",
    "task_id",
    "task",
    "queue",
    "priority",
    "content_type",
    "content_encoding",
    "eta",
    "expires_at",
    "max_deliveries",
    "retries",
    "time_limit",
    "soft_time_limit",
    "follow",
    "parent_id",
    "root_id",
    "store_result",
    "result_expires",
)
_plain_of = attrgetter(*_PLAIN)


def pack_job(job: Job) -> bytes:
    """A job for a child. One tuple and one encoding: this is paid per task."""
    message = job.message
    meta: Any = (
        job.number,
        job.deliveries,
        job.worker,
        job.soft_time_limit,
        job.time_limit,
        message.ack.value,
        None if message.rate is None else tuple(message.rate),
        None if message.concurrency is None else tuple(message.concurrency),
        dict(message.headers),
        _plain_of(message),
    )
    try:
        text = marshal.dumps(meta)
    except ValueError:
        # A value of a type of somebody's own: as JSON would write it.
        text = marshal.dumps(_loads(_encode(meta)))
    return _framed(JOB, text, message.body)


def job_of(frame: Frame) -> Job:
    """The job in a frame."""
    number, deliveries, worker, soft, hard, ack, rate, concurrency, headers, plain = frame.meta
    message = Message(
        body=frame.body,
        ack=AckMode(ack),
        rate=Rate(*rate) if rate else None,
        concurrency=ConcurrencyKey(*concurrency) if concurrency else None,
        headers=headers,
        **dict(zip(_PLAIN, plain, strict=True)),
    )
    return Job(
        number=number,
        message=message,
        deliveries=deliveries,
        worker=worker,
        soft_time_limit=soft,
        time_limit=hard,
    )


# -- completions ----------------------------------------------------------------------------------


def pack_completion(completion: Completion, extra: Mapping[str, Any] | None = None) -> bytes:
    """A completion for the coordinator; what has its default value is left out.

    Raises `EncodeError` for one that `completion_of` would refuse.
    """
    if extra is None and _is_plain(completion):
        body = completion.body or b""
        if len(body) <= MAX_BODY:
            plain = _PLAIN_SUCCESS.pack(completion.number, completion.runtime)
            return _framed(SUCCEEDED, plain, body)
    meta: dict[str, Any] = {"n": completion.number, "e": completion.ending.value}
    for name in _COMPLETION_DEFAULTS:
        value = getattr(completion, name)
        if value != _COMPLETION_DEFAULTS[name]:
            if not isinstance(value, _ACCEPTED[name]) and name != "children":
                raise EncodeError(f"{name} of a completion is {value!r:.100}")
            meta[name] = value
    body = completion.body or b""
    if completion.body is not None:
        meta["body"] = len(body)
    if completion.new_body is not None:
        meta["new_body"] = True
        body += completion.new_body
    if extra:
        meta.update(extra)
    frame = pack(DONE, meta, body)
    # The whole frame is a bound on its meta that costs nothing.
    if len(frame) > MAX_META:
        size = len(frame) - len(body) - _HEADER.size
        if size > MAX_META or len(body) > MAX_BODY:
            raise EncodeError(
                f"a completion of {size} bytes beside a result of {len(body)} is too large to be sent"
            )
    return frame


def _is_plain(completion: Completion) -> bool:
    """Whether number, runtime and a JSON value are all there is to a success."""
    return (
        completion.ending is Ending.SUCCEEDED
        and completion.body is not None
        and completion.content_type == JSON
        and completion.follow is None
        and completion.new_body is None
        and not completion.children
        and not completion.recycle
        and not completion.label
        and not completion.error
    )


_ACCEPTED: dict[str, Any] = {
    "content_type": str,
    "error": str,
    "traceback": str,
    "delay": (int, float),
    "priority": int,
    "follow": str,
    "label": str,
    "children": list,
    "reason": str,
    "recycle": bool,
    "runtime": (int, float),
}
_COMPLETION_DEFAULTS: dict[str, Any] = {
    name: Completion.__dataclass_fields__[name].default for name in _ACCEPTED
}


def completion_of(frame: Frame) -> Completion:
    """The completion in a frame; raises `DecodeError` for a frame that holds none."""
    meta = frame.meta
    if frame.kind == SUCCEEDED:
        number, runtime = meta
        return Completion(number=number, ending=Ending.SUCCEEDED, body=frame.body, runtime=runtime)
    try:
        fields = {name: meta[name] for name in _ACCEPTED if name in meta}
        for name, value in fields.items():
            if not isinstance(value, _ACCEPTED[name]):
                raise TypeError(f"{name} is {value!r}")
        if "children" in fields:
            fields["children"] = tuple(fields["children"])
        size = meta.get("body")
        return Completion(
            number=int(meta["n"]),
            ending=Ending(meta["e"]),
            body=None if size is None else frame.body[: int(size)],
            new_body=frame.body[int(size or 0) :] if meta.get("new_body") else None,
            **fields,
        )
    except (TypeError, ValueError, LookupError, AttributeError) as exc:
        raise DecodeError(f"no completion in a child's frame: {exc!r}") from None
