"""Bodies in both directions, and every malformed one as an error of this message alone (I10)."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
import pickle
import subprocess
import sys
import zlib
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskmq.codec import Codec
from taskmq.errors import (
    ConfigError,
    ContentRefused,
    DecodeError,
    EncodeError,
    MessageError,
    TooLarge,
)

JSON = "application/json"
CODEC = Codec()
EMPTY_EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


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


@pytest.mark.parametrize(
    "content_type",
    [
        "application/x-python-serialize",
        "pickle",
        "application/x-yaml",
        "application/x-msgpack",
        "text/plain",
        "",
        None,
        5,
    ],
)
def test_content_type_that_is_not_configured_is_refused(content_type: Any) -> None:
    with pytest.raises(ContentRefused, match="accept_content is json"):
        CODEC.decode_body(b"[[], {}, {}]", content_type)


def test_refused_pickle_is_not_even_opened(tmp_path: Any) -> None:
    canary = tmp_path / "canary"

    class Bomb:
        def __reduce__(self) -> Any:
            return (open, (str(canary), "w"))

    body = pickle.dumps([[Bomb()], {}, {}])
    with pytest.raises(ContentRefused):
        CODEC.decode_body(body, "application/x-python-serialize", "binary")
    with pytest.raises(ContentRefused):
        CODEC.decode_body(zlib.compress(body), "pickle", "binary", "zlib")
    with pytest.raises(ContentRefused):
        CODEC.decode_value(body, "application/x-python-serialize")

    assert not canary.exists()


def test_other_serializers_are_not_imported_unless_used() -> None:
    code = (
        "import sys; from taskmq.codec import Codec\n"
        "Codec(accept=('json', 'msgpack', 'yaml')).encode_body((1,), {})\n"
        "print(sorted({'pickle', 'msgpack', 'yaml', 'kombu'} & set(sys.modules)))"
    )

    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )

    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["json", "msgpack", "yaml", "pickle"])
def test_every_serializer_reads_what_it_writes(name: str) -> None:
    if name in ("msgpack", "yaml"):
        pytest.importorskip(name)
    import uuid
    from datetime import datetime, timezone
    from decimal import Decimal

    codec = Codec(name, ("msgpack", "yaml", "pickle") if name != "json" else ("json",))
    args = [1, "☃", b"\xff", 1.5, None, [{"a": []}], uuid.UUID(int=1), Decimal("1.0")]
    args.append(datetime(2026, 1, 2, tzinfo=timezone.utc))

    body, content_type, encoding = codec.encode_body(args, {"k": {"deep": [1]}})

    assert codec.decode_body(body, content_type, encoding) == (
        args,
        {"k": {"deep": [1]}},
        EMPTY_EMBED,
    )
    value, content_type = codec.encode_value(args)
    assert codec.decode_value(value, content_type) == args


@pytest.mark.parametrize("name", ["msgpack", "yaml"])
def test_other_serializers_refuse_with_the_path_too(name: str) -> None:
    pytest.importorskip(name)
    codec = Codec(name, (name,))

    with pytest.raises(EncodeError, match=r"^args\[0\]\.a: a set"):
        codec.encode_body(({"a": {1}},), {})
    with pytest.raises(EncodeError, match=r"^args\[0\]: text with a lone surrogate"):
        codec.encode_body(("\ud800",), {})
    with pytest.raises(EncodeError, match="keys are text"):
        codec.encode_body(({(1, 2): 3},), {})
    with pytest.raises(EncodeError, match="nested deeper"):
        codec.encode_body((nested(80),), {})


def test_what_cannot_be_pickled_is_an_encode_error() -> None:
    with pytest.raises(EncodeError, match="cannot be pickled"):
        Codec("pickle", ("pickle",)).encode_body((lambda: None,), {})


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("msgpack", b"\xc1"),
        ("msgpack", b"\x93\x90\x80"),
        ("msgpack", b"\x91" * 100 + b"\xc0"),
        ("msgpack", b"\x93\x91\xd4\x05\x00\x80\xc0"),
        ("yaml", b"[[], {}, {}"),
        ("yaml", b"- [!!python/object/apply:os.system [true]]\n- {}\n- {}"),
        ("yaml", b"- &a [1]\n- {}\n- {x: *a}"),
        ("yaml", b'- ["\\uD800"]\n- {}\n- {}'),
        ("pickle", b"garbage"),
        ("pickle", b"cos\nnosuchname\n."),
    ],
)
def test_malformed_body_of_another_serializer_is_a_decode_error(name: str, body: bytes) -> None:
    if name != "pickle":
        pytest.importorskip(name)

    with pytest.raises(DecodeError):
        Codec(name, (name,)).decode_body(body, name, "binary")


def test_yaml_aliases_are_refused_before_they_unfold() -> None:
    pytest.importorskip("yaml")
    lines = ["a: &a [x, x]"] + [f"{c}: &{c} [*{p}, *{p}]" for p, c in zip("abcdefgh", "bcdefghi")]  # noqa: B905

    with pytest.raises(DecodeError, match="aliases"):
        Codec("yaml", ("yaml",)).decode_value("\n".join(lines).encode(), "yaml")


@pytest.mark.parametrize("name", ["xml", "jsonn", ""])
def test_unknown_serializer_is_a_config_error(name: str) -> None:
    with pytest.raises(ConfigError, match="one of json, msgpack, yaml, pickle"):
        Codec(name)
    with pytest.raises(ConfigError, match="accept_content"):
        Codec(accept=(name,))


def test_serializer_that_is_not_installed_is_a_config_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("taskmq.codec.serializers.find_spec", lambda package: None)

    with pytest.raises(ConfigError, match=r"pip install 'taskmq\[msgpack\]'"):
        Codec("msgpack")


BODY = b"[[1], {}, {}]"


@pytest.mark.parametrize(
    ("compression", "packed"),
    [
        ("application/x-gzip", zlib.compress(BODY)),
        ("gzip", gzip.compress(BODY)),
        ("zlib", zlib.compress(BODY)),
        ("application/x-bz2", bz2.compress(BODY)),
        ("application/x-lzma", lzma.compress(BODY)),
    ],
)
def test_compressed_body_is_unpacked(compression: str, packed: bytes) -> None:
    assert CODEC.decode_body(packed, JSON, "utf-8", compression) == ([1], {}, {})


@pytest.mark.parametrize(
    ("compression", "pack"),
    [("zlib", zlib.compress), ("bzip2", bz2.compress), ("lzma", lzma.compress)],
)
def test_compression_bomb_is_too_large(compression: str, pack: Any) -> None:
    bomb = pack(b" " * 50_000_000)
    assert len(bomb) < 100_000

    with pytest.raises(TooLarge, match=r"unpacked body is over 1,000 bytes"):
        Codec(max_body=1000).decode_body(bomb, JSON, "utf-8", compression)


@pytest.mark.parametrize("compression", ["zlib", "bzip2", "xz"])
@pytest.mark.parametrize(
    "packed", [b"", b"junk", zlib.compress(BODY)[:-3], bz2.compress(BODY)[:-3]]
)
def test_damaged_compression_is_a_decode_error(compression: str, packed: bytes) -> None:
    with pytest.raises(DecodeError):
        CODEC.decode_body(packed, JSON, "utf-8", compression)


@pytest.mark.parametrize("compression", ["brotli", "zip", 5, [], ""])
def test_unknown_compression_is_named(compression: Any) -> None:
    with pytest.raises(DecodeError, match="header 'compression'"):
        CODEC.decode_body(BODY, JSON, "utf-8", compression)


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
