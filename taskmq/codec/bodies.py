"""The codec: arguments and results to bytes and back, within limits that both directions share.

What a submit accepts a worker can decode: the same depth, size and number rules hold on both sides.
JSON is the hot path and pays for its checks only where a count of brackets or an escape asks for them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from taskmq.codec.serializers import CONTENT_TYPES, NAMES, Serializer, check_installed, serializer
from taskmq.codec.values import ENCODED, MAX_DEPTH, find_fault, from_wire, json_depth, to_wire
from taskmq.config import MIB
from taskmq.errors import ContentRefused, DecodeError, EncodeError, TooLarge
from taskmq.message import JSON

# What a Celery worker expects as the third part of a body when nothing follows the task.
NO_EMBED = b'{"callbacks":null,"errbacks":null,"chain":null,"chord":null}'
_NO_EMBED_TAIL = "," + NO_EMBED.decode() + "]"
_NO_ARGUMENTS = b"[[],{}," + NO_EMBED + b"]"

# Text encodings a content encoding may name. A codec is never looked up by a name from a message:
# Python would import a module of that name.
_TEXT = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "binary", ""})

# A value refers to itself only by accident, and then the recursion limit says so; the marker
# dictionary that would find it costs a fifth of a small body's encoding.
_encode = json.JSONEncoder(
    ensure_ascii=False,
    check_circular=False,
    allow_nan=False,
    separators=(",", ":"),
    default=to_wire,
).encode

_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_UNENCODABLE = (TypeError, ValueError, RecursionError, OverflowError)


class Codec:
    """Encodes in one content type, decodes those it accepts. Immutable and safe to share.

    `serializer` and `accept` are names (json, msgpack, yaml, pickle); JSON is always accepted, since the
    engine itself writes it. `max_body` is in bytes and counts after decompression. Raises `ConfigError`
    when a configured serializer is not installed.
    """

    __slots__ = (
        "_accept",
        "_decoder",
        "_json",
        "_others",
        "content_type",
        "max_body",
        "serializer",
    )

    def __init__(
        self, serializer: str = "json", accept: Sequence[str] = ("json",), max_body: int = MIB
    ) -> None:
        for name in accept:
            check_installed(name, "accept_content")
        check_installed(serializer, "serializer")
        self.serializer = serializer
        self.content_type = CONTENT_TYPES[serializer]
        self.max_body = max_body
        self._json = serializer == "json"
        self._accept = frozenset(accept) | {"json"}
        self._others: dict[str, Serializer] = {}
        self._decoder = json.JSONDecoder(
            object_hook=self._typed, parse_float=_finite, parse_constant=_no_constant
        )

    # -- bodies -----------------------------------------------------------------------------------

    def encode_body(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        embed: Mapping[str, Any] | None = None,
    ) -> tuple[bytes, str, str]:
        """`[args, kwargs, embed]` as (body, content type, content encoding).

        Raises `EncodeError` with the path of the argument that cannot be sent ("args[0].color: …"), or
        `TooLarge`.
        """
        if not kwargs:
            if not args and embed is None and self._json:
                return _NO_ARGUMENTS, JSON, "utf-8"
            kwargs = {}
        elif type(kwargs) is not dict:
            kwargs = dict(kwargs)
        for name in kwargs:
            if not isinstance(name, str):
                raise EncodeError(f"kwargs: names are text, got {name!r}")
        if type(args) is not tuple:
            args = tuple(args)
        if not self._json:
            parts = (args, kwargs, dict(embed) if embed is not None else json.loads(NO_EMBED))
            body = self._encode_other(parts, {"args": args, "kwargs": kwargs})
            self._check_size(body, "the encoded arguments are")
            return body, self.content_type, self._other(self.serializer).encoding
        try:
            if embed is None:
                body = (_encode((args, kwargs))[:-1] + _NO_EMBED_TAIL).encode()
            else:
                body = _encode((args, kwargs, dict(embed))).encode()
        except _UNENCODABLE as exc:
            _explain(exc, {"args": args, "kwargs": kwargs, "embed": embed})
        if json_depth(body) > MAX_DEPTH:
            _explain(ValueError(_TOO_DEEP), {"args": args, "kwargs": kwargs, "embed": embed})
        self._check_size(body, "the encoded arguments are")
        return body, JSON, "utf-8"

    def decode_body(
        self,
        body: bytes,
        content_type: str,
        content_encoding: str = "utf-8",
        compression: str | None = None,
    ) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
        """The arguments, keyword arguments and embed of a body.

        Raises `ContentRefused` for a content type that is not accepted, `TooLarge` for a body over
        `max_body` once unpacked, `DecodeError` for anything else that is not such a body.
        """
        # Refused before a byte of it is looked at.
        self._accepted(content_type)
        if compression is not None:
            # Imported here: three compression libraries, for producers that are rarely met.
            from taskmq.codec.compression import decompress

            body = decompress(body, compression, self.max_body)
        value = self._decode(body, content_type, content_encoding)
        if not isinstance(value, (list, tuple)) or len(value) != 3:
            if isinstance(value, dict) and "task" in value:
                raise DecodeError(
                    "the body is a Celery protocol 1 message; set task_protocol = 2 at its producer"
                )
            raise DecodeError(f"the body is [args, kwargs, embed], got {_shape(value)}")
        args, kwargs, embed = value
        if not isinstance(args, (list, tuple)):
            raise DecodeError(f"the body's args are a list, got {_shape(args)}")
        if not isinstance(kwargs, dict) or not all(isinstance(name, str) for name in kwargs):
            raise DecodeError(f"the body's kwargs are names to values, got {_shape(kwargs)}")
        if embed is not None and not isinstance(embed, dict):
            raise DecodeError(f"the body's embed is a mapping or null, got {_shape(embed)}")
        return list(args), kwargs, embed or {}

    # -- values -----------------------------------------------------------------------------------

    def encode_value(self, value: Any, name: str = "the result") -> tuple[bytes, str]:
        """One value (a result, a progress value) as (bytes, content type). `name` is for errors.

        Raises `EncodeError` with the path of what cannot be sent, or `TooLarge`.
        """
        if not self._json:
            body = self._encode_other(value, {name: value})
            self._check_size(body, f"{name} takes")
            return body, self.content_type
        try:
            body = _encode(value).encode()
        except _UNENCODABLE as exc:
            _explain(exc, {name: value})
        if json_depth(body) > MAX_DEPTH:
            _explain(ValueError(_TOO_DEEP), {name: value})
        self._check_size(body, f"{name} takes")
        return body, JSON

    def decode_value(self, body: bytes | None, content_type: str = JSON) -> Any:
        """One value; None for no bytes. Raises `ContentRefused`, `TooLarge`, `DecodeError`."""
        if not body:
            return None
        self._accepted(content_type)
        return self._decode(body, content_type, "")

    # -- inside -----------------------------------------------------------------------------------

    def _accepted(self, content_type: Any) -> str:
        name = NAMES.get(content_type) if isinstance(content_type, str) else None
        if name is None or name not in self._accept:
            accepted = ", ".join(sorted(self._accept))
            raise ContentRefused(
                f"content type {content_type!a:.80} is not accepted here; accept_content is {accepted}"
            )
        return name

    def _decode(self, body: bytes, content_type: str, content_encoding: str) -> Any:
        name = self._accepted(content_type)
        if len(body) > self.max_body:
            raise TooLarge(f"the body is {len(body):,} bytes; max_body is {self.max_body:,}")
        if not isinstance(content_encoding, str) or content_encoding.lower() not in _TEXT:
            raise DecodeError(f"content encoding: utf-8 or binary, got {content_encoding!a:.80}")
        try:
            if name == "json":
                return self._decode_json(body)
            return self._other(name).load(body, self._typed)
        except UnicodeError as exc:
            raise DecodeError(f"the body is not UTF-8: {exc}") from exc
        except RecursionError as exc:
            raise DecodeError(f"the body is nested deeper than {MAX_DEPTH} levels") from exc
        except (ValueError, TypeError, OverflowError) as exc:
            raise DecodeError(f"the body cannot be read as {name}: {exc}") from exc

    def _decode_json(self, body: bytes) -> Any:
        decoder = self._decoder if b"__type__" in body else _PLAIN
        value = decoder.decode(str(body, "utf-8"))
        if json_depth(body) > MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
        if b"\\u" in body:
            # The only way to a lone surrogate is an escape. It could be neither stored nor printed.
            _encode(value).encode()
        return value

    def _typed(self, pairs: dict[str, Any]) -> Any:
        if len(pairs) == 2 and pairs.get("__type__") == ENCODED:
            value = pairs.get("__value__")
            if not isinstance(value, dict) or not isinstance(value.get("body"), str):
                raise ValueError(f"a malformed value of __type__ {ENCODED!r}")
            inner = base64.b64decode(value["body"].encode("ascii"), validate=True)
            return self.decode_value(inner, value.get("content_type", ""))
        return from_wire(pairs)

    def _other(self, name: str) -> Serializer:
        found = self._others.get(name)
        if found is None:
            found = self._others[name] = serializer(name)
        return found

    def _encode_other(self, value: Any, roots: Mapping[str, Any]) -> bytes:
        try:
            return self._other(self.serializer).dump(value)
        except _UNENCODABLE as exc:
            if self.serializer == "pickle":
                raise EncodeError(f"{' or '.join(roots)}: {exc}") from exc
            _explain(exc, roots)

    def _check_size(self, body: bytes, what: str) -> None:
        if len(body) > self.max_body:
            raise TooLarge(
                f"{what} {len(body):,} bytes; max_body is {self.max_body:,}. Store large data "
                "elsewhere and pass where it is"
            )


def encode_json(value: Any, name: str) -> str:
    """A value as JSON text with typed values, without limits of size and depth.

    For what travels beside bodies. Raises `EncodeError` with the path of what cannot be sent.
    """
    try:
        text = _encode(value)
        text.encode()
    except _UNENCODABLE as exc:
        _explain(exc, {name: value})
    return text


def decode_json(text: str, *, max_depth: int = MAX_DEPTH) -> Any:
    """JSON text whose typed values stay as they travel; `DecodeError` for what is no strict JSON."""
    try:
        value = _PLAIN.decode(text)
        if json_depth(text.encode(), max_depth) > max_depth:
            raise ValueError(f"nested deeper than {max_depth} levels")
        if "\\u" in text:
            _encode(value).encode()
    except (ValueError, RecursionError) as exc:
        raise DecodeError(f"not JSON: {exc}") from exc
    return value


def _explain(cause: Exception, roots: Mapping[str, Any]) -> NoReturn:
    """Raise the `EncodeError` that names the first value which cannot be sent."""
    for name, value in roots.items():
        fault = find_fault(value, name)
        if fault:
            raise EncodeError(f"{fault[0]}: {fault[1]}") from cause
    raise EncodeError(f"{' or '.join(roots)}: {cause}") from cause


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError(f"{text[:40]} is no finite number")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# For bodies without typed values: no call per object.
_PLAIN = json.JSONDecoder(parse_float=_finite, parse_constant=_no_constant)


def _shape(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return {dict: "an object", str: "text", type(None): "null"}.get(
        type(value), type(value).__name__
    )
