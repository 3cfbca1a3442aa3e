"""Which values JSON carries, in Celery's form, and how a refusal names the argument."""

from __future__ import annotations

import dataclasses
import enum
import json
import uuid
from collections import OrderedDict
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from taskmq.codec import Codec, as_json
from taskmq.errors import DecodeError, EncodeError

CODEC = Codec()


def there_and_back(value: Any) -> Any:
    body, content_type, encoding = CODEC.encode_body((value,), {"key": value})
    args, kwargs, _ = CODEC.decode_body(body, content_type, encoding)
    assert args == [kwargs["key"]]
    return args[0]


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 5


class Word(str, enum.Enum):
    YES = "yes"


class Pair(NamedTuple):
    a: int
    b: int


@dataclasses.dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**80),
        1.5,
        "",
        "naïve ☃ 😀 \u0000 \u2028",
        [1, [2, {"three": None}]],
        {"a": {"b": []}},
        datetime(2026, 11, 30, 1, 2, 3, 4),
        datetime(2026, 11, 30, tzinfo=timezone.utc),
        datetime(2026, 11, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        date(2026, 2, 28),
        time(23, 59, 59, 1),
        Decimal("1.50"),
        uuid.UUID(int=5),
        b"text",
        b"\xff\x00",
    ],
)
def test_value_survives(value: Any) -> None:
    back = there_and_back(value)

    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        ((1, 2), [1, 2]),
        (Pair(1, 2), [1, 2]),
        (Level.HIGH, 5),
        (Word.YES, "yes"),
        ({1: "a", None: "b"}, {"1": "a", "null": "b"}),
        (OrderedDict(a=1), {"a": 1}),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
    ],
)
def test_value_arrives_in_its_json_form(value: Any, arrives: Any) -> None:
    assert there_and_back(value) == arrives


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (datetime(2020, 1, 2, 3, 4, 5, 6), ("datetime", "2020-01-02T03:04:05.000006")),
        (date(2020, 1, 2), ("date", "2020-01-02")),
        (time(1, 2), ("time", "01:02:00")),
        (Decimal("1.50"), ("decimal", "1.50")),
        (uuid.UUID(int=5), ("uuid", {"hex": "0" * 31 + "5"})),
        (b"abc", ("bytes", "abc")),
        (b"\xff\x00", ("base64", "/wA=")),
    ],
)
def test_typed_value_has_the_form_celery_writes(value: Any, wire: tuple[str, Any]) -> None:
    body, _ = CODEC.encode_value(value)

    assert json.loads(body) == {"__type__": wire[0], "__value__": wire[1]}


def test_object_with_json_method_gives_its_replacement() -> None:
    class Money:
        def __json__(self) -> Any:
            return {"amount": Decimal("3"), "currency": "EUR"}

    assert there_and_back(Money()) == {"amount": Decimal("3"), "currency": "EUR"}


@pytest.mark.parametrize(
    ("value", "way_out"),
    [
        (Colour.RED, "pass its .value"),
        ({1, 2}, "pass a list"),
        (frozenset(), "pass a list"),
        (Point(1), "dataclasses.asdict"),
        (timedelta(days=1), "total_seconds"),
        (MappingProxyType({}), "pass dict(...)"),
        (1j, "[real, imag]"),
        (int, "pass its name"),
        (object(), "of type object"),
        (float("nan"), "no JSON number"),
        (float("-inf"), "no JSON number"),
        ("\ud800", "lone surrogate"),
        ({(1, 2): 3}, "keys are text"),
        ({float("nan"): 3}, "no JSON number"),
        pytest.param(10**5000, "digits", id="5001 digits"),
    ],
)
def test_refusal_names_argument_and_way_out(value: Any, way_out: str) -> None:
    with pytest.raises(EncodeError) as caught:
        CODEC.encode_body((1, {"colour": [value]}), {})

    assert str(caught.value).startswith("args[1].colour[0]: ")
    assert way_out in str(caught.value)


def test_refusal_names_keyword_argument() -> None:
    with pytest.raises(EncodeError, match=r"^kwargs\.when: a timedelta"):
        CODEC.encode_body((), {"ok": 1, "when": timedelta(1)})


def test_refusal_writes_odd_keys_as_an_index() -> None:
    with pytest.raises(EncodeError, match=r"^args\[0\]\['a b'\]: a set"):
        CODEC.encode_body(({"a b": {1}},), {})


def test_refusal_names_the_result() -> None:
    with pytest.raises(EncodeError, match=r"^the result\[1\]: a set"):
        CODEC.encode_value([1, {2}])


def test_refusal_does_not_show_the_value() -> None:
    class Secret:
        def __repr__(self) -> str:
            return "hunter2"

    with pytest.raises(EncodeError) as caught:
        CODEC.encode_body((Secret(),), {})

    assert "hunter2" not in str(caught.value)


def test_model_instance_is_refused_with_its_primary_key_named() -> None:
    class Model:
        _meta = object()
        pk = 7

    with pytest.raises(EncodeError, match="pass its primary key"):
        CODEC.encode_body((Model(),), {})


def test_list_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(EncodeError, match="contains itself"):
        CODEC.encode_body((loop,), {})


def test_same_list_twice_is_no_loop() -> None:
    shared = [1]

    assert there_and_back([shared, shared]) == [[1], [1]]


@pytest.mark.parametrize(
    "typed",
    [
        '{"__type__": "datetime", "__value__": "yesterday"}',
        '{"__type__": "datetime", "__value__": 5}',
        '{"__type__": "date", "__value__": [1]}',
        '{"__type__": "uuid", "__value__": {"int": 5}}',
        '{"__type__": "uuid", "__value__": "xyz"}',
        '{"__type__": "decimal", "__value__": "1,5"}',
        '{"__type__": "decimal", "__value__": [0, [1], 2]}',
        '{"__type__": "base64", "__value__": "***"}',
        '{"__type__": "bytes", "__value__": null}',
        '{"__type__": "os.system", "__value__": "true"}',
        '{"__type__": ["list"], "__value__": 1}',
        '{"__type__": "taskmq.encoded", "__value__": {}}',
        '{"__type__": "taskmq.encoded", "__value__": {"body": "!", "content_type": "application/json"}}',
    ],
)
def test_malformed_typed_value_is_a_decode_error(typed: str) -> None:
    with pytest.raises(DecodeError):
        CODEC.decode_body(f"[[{typed}], {{}}, {{}}]".encode(), "application/json")


def test_uuid_and_zulu_time_are_read_in_their_short_forms() -> None:
    body = (
        b'[[{"__type__": "uuid", "__value__": "00000000-0000-0000-0000-000000000005"},'
        b'{"__type__": "datetime", "__value__": "2026-01-02T03:04:05Z"}], {}, {}]'
    )

    args, _, _ = CODEC.decode_body(body, "application/json")

    assert args == [uuid.UUID(int=5), datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)]


def test_object_with_more_than_the_two_keys_is_plain() -> None:
    value = {"__type__": "bytes", "__value__": "x", "more": 1}

    assert there_and_back(value) == value


def test_value_in_another_content_type_travels_inside_json() -> None:
    pickling = Codec("pickle", ("pickle",))
    inner, content_type = pickling.encode_value({1, 2})

    outer = b"[[" + as_json(inner, content_type) + b"],{},{}]"

    assert pickling.decode_body(outer, "application/json")[0] == [{1, 2}]


def test_value_in_a_content_type_that_is_not_accepted_is_refused_inside_json_too() -> None:
    inner, content_type = Codec("pickle", ("pickle",)).encode_value(1)

    with pytest.raises(Exception, match="not accepted"):
        CODEC.decode_value(as_json(inner, content_type))


def test_json_value_is_itself_inside_json() -> None:
    assert as_json(b'{"a":1}', "application/json") == b'{"a":1}'
    assert as_json(None, "application/json") == b"null"
