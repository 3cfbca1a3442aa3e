"""Which Python values JSON carries, and how: Celery's wire form, so that both fleets read each other.

What JSON lacks travels as `{"__type__": …, "__value__": …}`: datetime, date, time, Decimal, UUID and
bytes. An object with a `__json__()` method gives its own replacement. Tuples and named tuples arrive
as lists, and keys that are numbers as text, as JSON has it. Nothing else is sent: a set, an Enum or an
instance would arrive as something else, so it is refused where it was written.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Set
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from taskmq.message import JSON

if TYPE_CHECKING:
    from decimal import Decimal
    from uuid import UUID

#: How deep arrays and objects of one body may be nested, the body's own array included.
MAX_DEPTH = 64

#: The same for what follows a message: unfolding a chord puts what comes after it inside its body.
MAX_FOLLOW_DEPTH = 256

#: The type under which a value in another content type travels inside JSON (a pickled result that
#: becomes an argument of the next step of a chain).
ENCODED = "taskmq.encoded"


def to_wire(value: Any) -> Any:
    """The replacement of a value that JSON lacks; `TypeError` with the reason and the way out."""
    if isinstance(value, datetime):
        return _typed("datetime", value.isoformat())
    if isinstance(value, date):
        return _typed("date", value.isoformat())
    if isinstance(value, time):
        return _typed("time", value.isoformat())
    if _is(value, "decimal", "Decimal"):
        return _typed("decimal", str(value))
    if _is(value, "uuid", "UUID"):
        return _typed("uuid", {"hex": value.hex})
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes_to_wire(bytes(value))
    if not isinstance(value, type):
        reducer = getattr(value, "__json__", None)
        if reducer is not None:
            return reducer()
    # Django's lazy translations are text in all but type.
    if _is(value, "django.utils.functional", "Promise"):
        return str(value)
    raise TypeError(_refusal(value))


def _is(value: Any, module: str, name: str) -> bool:
    """Whether it is of that class. Looked up, never imported: who has such a value has the module."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)


def _typed(kind: str, value: Any) -> dict[str, Any]:
    return {"__type__": kind, "__value__": value}


def _bytes_to_wire(value: bytes) -> dict[str, Any]:
    try:
        return _typed("bytes", value.decode("utf-8"))
    except UnicodeDecodeError:
        return _typed("base64", base64.b64encode(value).decode("ascii"))


def _refusal(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, enum.Enum):
        return f"an Enum member ({kind}) cannot be sent; pass its .value"
    if isinstance(value, timedelta):
        return "a timedelta cannot be sent; pass .total_seconds()"
    if isinstance(value, Set):
        return f"a {kind} cannot be sent; pass a list (sorted(...) if the order matters)"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return f"a dataclass ({kind}) cannot be sent; pass dataclasses.asdict(...)"
    if isinstance(value, type):
        return f"a class ({value.__name__}) cannot be sent; pass its name"
    if isinstance(value, complex):
        return "a complex number cannot be sent; pass [real, imag]"
    if isinstance(value, Mapping):
        return f"a {kind} cannot be sent; pass dict(...)"
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return f"a {kind} cannot be sent; pass .tolist()"
    if hasattr(value, "_meta") and hasattr(value, "pk"):
        return f"a model instance ({kind}) cannot be sent; pass its primary key"
    return (
        f"a value of type {kind} cannot be sent; sent are None, bool, int, float, str, list, tuple, "
        "dict, datetime, date, time, Decimal, UUID, bytes and objects with __json__()"
    )


def from_wire(pairs: dict[str, Any]) -> Any:
    """The value of a typed object; any other object as it is. `ValueError` for a malformed one."""
    if len(pairs) != 2 or "__type__" not in pairs or "__value__" not in pairs:
        return pairs
    kind, value = pairs["__type__"], pairs["__value__"]
    decode = _DECODERS.get(kind) if isinstance(kind, str) else None
    if decode is None:
        known = ", ".join(_DECODERS)
        raise ValueError(f"a value of __type__ {kind!r} is not known; known are {known}")
    try:
        return decode(value)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as exc:
        raise ValueError(f"a malformed value of __type__ {kind!r}: {exc}") from exc


def read_datetime(text: str) -> datetime:
    """ISO 8601 text; `ValueError` for anything else. "Z" too, which Python 3.10 does not know."""
    return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


def _decode_date(text: str) -> date:
    return read_datetime(text).date()


def _decode_decimal(text: str) -> Decimal:
    if not isinstance(text, str):
        raise TypeError(f"text expected, got {type(text).__name__}")
    from decimal import Decimal

    return Decimal(text)


def _decode_uuid(value: Any) -> UUID:
    from uuid import UUID

    return UUID(hex=value["hex"] if isinstance(value, dict) else value)


def _decode_bytes(text: str) -> bytes:
    return text.encode("utf-8")


def _decode_base64(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "datetime": read_datetime,
    "date": _decode_date,
    "time": time.fromisoformat,
    "decimal": _decode_decimal,
    "uuid": _decode_uuid,
    "bytes": _decode_bytes,
    "base64": _decode_base64,
}


def as_json(body: bytes | None, content_type: str) -> bytes:
    """An encoded value as JSON text, whatever its content type, without decoding it.

    A value in another content type travels as base64 and is decoded, if accepted, by the process that
    decodes the JSON around it.
    """
    if not body:
        return b"null"
    if content_type == JSON:
        return body
    text = base64.b64encode(body).decode("ascii")
    wrapped = _typed(ENCODED, {"content_type": content_type, "body": text})
    return json.dumps(wrapped, separators=(",", ":")).encode()


_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_ALL_BUT_BRACKETS = bytes(b for b in range(256) if b not in b"[]{}")


def json_depth(text: bytes, limit: int = MAX_DEPTH) -> int:
    """How deep valid JSON is nested, 0 where it is plainly within `limit`.

    Linear; for text that a parser has accepted.
    """
    if text.count(b"[") + text.count(b"{") <= limit:
        return 0
    depth = deepest = 0
    for bracket in _STRINGS.sub(b"", text).translate(None, _ALL_BUT_BRACKETS):
        if bracket in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def find_fault(value: Any, path: str, *, depth: int = 1) -> tuple[str, str] | None:
    """The path and the reason of the first value in `value` that cannot be sent; None when all can.

    Only called once encoding has failed: it walks everything.
    """
    return _Fault().find(value, path, depth)


class _Fault:
    def __init__(self) -> None:
        self._inside: set[int] = set()

    def find(self, value: Any, path: str, depth: int) -> tuple[str, str] | None:
        if value is None or isinstance(value, bool):
            return None
        if isinstance(value, str):
            return _text_fault(value, path)
        if isinstance(value, int):
            return _int_fault(value, path)
        if isinstance(value, float):
            if math.isfinite(value):
                return None
            return path, f"{value!r} is no JSON number; pass None or text"
        if depth > MAX_DEPTH:
            path = path if len(path) <= 80 else f"{path[:60]}…"
            return path, f"nested deeper than {MAX_DEPTH} levels"
        if id(value) in self._inside:
            return path, "it contains itself"
        self._inside.add(id(value))
        try:
            return self._inner(value, path, depth)
        finally:
            self._inside.discard(id(value))

    def _inner(self, value: Any, path: str, depth: int) -> tuple[str, str] | None:
        if isinstance(value, dict):
            for key, item in value.items():
                fault = _key_fault(key, path) or self.find(item, _at_key(path, key), depth + 1)
                if fault:
                    return fault
            return None
        if isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                fault = self.find(item, f"{path}[{index}]", depth + 1)
                if fault:
                    return fault
            return None
        try:
            replacement = to_wire(value)
        except (TypeError, ValueError) as exc:
            return path, str(exc)
        return self.find(replacement, path, depth)


def _text_fault(text: str, path: str) -> tuple[str, str] | None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        return path, (
            f"text with a lone surrogate (U+{ord(text[exc.start]):04X} at {exc.start}) is no UTF-8; "
            "file names from the system pass as os.fsencode(...)"
        )
    return None


def _int_fault(number: int, path: str) -> tuple[str, str] | None:
    try:
        int.__repr__(number)
    except ValueError as exc:
        return path, f"an int of too many digits to be read back ({exc}); pass it as text"
    return None


def _key_fault(key: Any, path: str) -> tuple[str, str] | None:
    if isinstance(key, str):
        return _text_fault(key, path)
    if key is None or isinstance(key, (bool, int)):
        return None
    if isinstance(key, float):
        return None if math.isfinite(key) else (path, f"the key {key!r} is no JSON number")
    return path, f"a key of type {type(key).__name__} cannot be sent; keys are text"


def _at_key(path: str, key: Any) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{ascii(key)[:60]}]"
