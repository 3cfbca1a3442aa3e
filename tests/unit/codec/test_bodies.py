"""Bodies in both directions, and every malformed one as an error of this message alone (I10)."""

from __future__ import annotations

import base64
import json
import sys
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskmq.codec import Codec
from taskmq.errors import (
    DecodeError,
    EncodeError,
    MessageError,
    TooLarge,
)
from tests.unit.codec.bodies import EMPTY_EMBED, nested

JSON = "application/json"
CODEC = Codec()


def test_body_has_the_three_parts_celery_expects() -> None:
    body, content_type, encoding = CODEC.encode_body((1, "a"), {"b": 2})

    assert json.loads(body) == [[1, "a"], {"b": 2}, EMPTY_EMBED]
    assert (content_type, encoding) == (JSON, "utf-8")


def test_call_without_arguments_has_the_same_parts() -> None:
    assert json.loads(CODEC.encode_body((), {})[0]) == [[], {}, EMPTY_EMBED]


def test_embed_is_written_and_read_back() -> None:
    body, _, _ = CODEC.encode_body([1], {}, {"chain": [], "x": 1})

    assert CODEC.decode_body(body, JSON) == ([1], {}, {"chain": [], "x": 1})


def test_any_mapping_and_sequence_is_taken() -> None:
    body, _, _ = CODEC.encode_body(range(3), MappingProxyType({"a": 1}))

    assert CODEC.decode_body(body, JSON)[:2] == ([0, 1, 2], {"a": 1})


def test_names_of_keyword_arguments_are_text() -> None:
    with pytest.raises(EncodeError, match="kwargs: names are text, got 1"):
        CODEC.encode_body((), {1: 2})  # type: ignore[dict-item]


def test_null_embed_reads_as_empty() -> None:
    assert CODEC.decode_body(b"[[], {}, null]", JSON) == ([], {}, {})


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"]))
        | st.binary()
        | st.decimals(allow_nan=False)
        | st.uuids()
        | st.datetimes(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
        ),
        max_leaves=12,
    ).filter(lambda v: not (isinstance(v, dict) and v.keys() == {"__type__", "__value__"}))
)
@settings(max_examples=100, deadline=None)
def test_whatever_can_be_sent_arrives_equal(value: Any) -> None:
    body, content_type, encoding = CODEC.encode_body((value,), {})

    assert CODEC.decode_body(body, content_type, encoding)[0] == [value]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[[1, 2], {}, {}",
        b"[[1, 2], {}, {}]]",
        b"null",
        b"5",
        b'"text"',
        b"{}",
        b"[]",
        b"[[], {}]",
        b"[[], {}, {}, {}]",
        b"[{}, {}, {}]",
        b"[[], [], {}]",
        b"[[], {}, []]",
        b'["ab", {}, {}]',
        b"[[NaN], {}, {}]",
        b"[[Infinity], {}, {}]",
        b"[[-Infinity], {}, {}]",
        b"[[1e999], {}, {}]",
        b"[[" + b"9" * 400 + b".0], {}, {}]",
        b"[[" + b"1" * 5000 + b"], {}, {}]",
        b'[["\\ud800"], {}, {}]',
        b'[["\\udc00\\ud800"], {}, {}]',
        b'[["\xff"], {}, {}]',
        b"\xef\xbb\xbf[[], {}, {}]",
        "[[], {}, {}]".encode("utf-16"),
        b'[["\x00"], {}, {}]',
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    ],
)
def test_malformed_body_is_a_decode_error(body: bytes) -> None:
    with pytest.raises(DecodeError):
        CODEC.decode_body(body, JSON)


def test_escaped_nul_and_surrogate_pairs_are_text() -> None:
    body = b'[["\\u0000 \\ud83d\\ude00 \\\\ud800"], {}, {}]'

    assert CODEC.decode_body(body, JSON)[0] == ["\x00 \U0001f600 \\ud800"]


def test_protocol_one_body_is_named() -> None:
    with pytest.raises(DecodeError, match="protocol 1"):
        CODEC.decode_body(b'{"task": "a", "args": [], "kwargs": {}}', JSON)


def test_depth_is_bounded_alike_in_both_directions() -> None:
    # The body's own list and its args are two of the 64.
    deepest = nested(62)
    body, _, _ = CODEC.encode_body((deepest,), {})
    assert CODEC.decode_body(body, JSON)[0] == [deepest]

    with pytest.raises(EncodeError, match="nested deeper than 64 levels"):
        CODEC.encode_body((nested(63),), {})
    with pytest.raises(DecodeError, match="nested deeper than 64 levels"):
        CODEC.decode_body(json.dumps([[nested(63)], {}, {}]).encode(), JSON)


def test_brackets_in_text_are_no_depth() -> None:
    text = "[{" * 200 + '"\\'

    body, _, _ = CODEC.encode_body((text, {text: text}), {})

    assert CODEC.decode_body(body, JSON)[0] == [text, {text: text}]


def test_wide_is_not_deep() -> None:
    wide = [{"a": [i]} for i in range(1000)]

    body, _, _ = CODEC.encode_body((wide,), {})

    assert CODEC.decode_body(body, JSON)[0] == [wide]


def test_body_over_max_body_is_too_large_in_both_directions() -> None:
    small = Codec(max_body=200)
    body, _, _ = CODEC.encode_body(("x" * 300,), {})

    with pytest.raises(TooLarge, match=r"the encoded arguments are 3\d\d bytes; max_body is 200"):
        small.encode_body(("x" * 300,), {})
    with pytest.raises(TooLarge, match="the result takes 302 bytes; max_body is 200"):
        small.encode_value("x" * 300)
    with pytest.raises(TooLarge, match="max_body is 200"):
        small.decode_body(body, JSON)


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "us-ascii", "binary"])
def test_text_encodings_celery_names_are_read(encoding: str) -> None:
    assert CODEC.decode_body(b"[[], {}, {}]", JSON, encoding) == ([], {}, {})


@pytest.mark.parametrize("encoding", ["utf-16", "rot13", "antigravity", "../x", None, 5])
def test_other_encoding_is_refused_and_never_looked_up(encoding: Any) -> None:
    with pytest.raises(DecodeError, match="content encoding"):
        CODEC.decode_body(b"[[], {}, {}]", JSON, encoding)

    assert f"encodings.{encoding}" not in sys.modules or encoding == "utf-16"


def test_no_bytes_are_no_value() -> None:
    assert CODEC.decode_value(None) is None
    assert CODEC.decode_value(b"") is None


VALID = json.dumps(
    [[1, "a\u00e9", {"__type__": "bytes", "__value__": "x"}], {"k": [1.5, None]}, EMPTY_EMBED]
).encode()


@given(
    st.binary(max_size=200)
    | st.builds(
        lambda at, junk, cut: VALID[:at] + junk + VALID[at + cut :],
        st.integers(0, len(VALID)),
        st.binary(max_size=6)
        | st.sampled_from([b"[", b"{", b"\\u", b'"', b"NaN", b"1e999", b"\\ud800"]),
        st.integers(0, 4),
    ),
    st.sampled_from([None, "zlib", "bzip2", "xz"]),
)
@example(base64.b64decode("eJw="), "zlib")
@settings(max_examples=100, deadline=None)
def test_no_bytes_at_all_escape_the_message_errors(body: bytes, compression: str | None) -> None:
    try:
        args, kwargs, embed = CODEC.decode_body(body, JSON, "utf-8", compression)
    except MessageError:
        return
    assert isinstance(args, list)
    assert isinstance(kwargs, dict)
    assert isinstance(embed, dict)
