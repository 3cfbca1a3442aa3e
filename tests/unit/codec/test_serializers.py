"""Content types besides JSON: only when configured, and then under the same rules."""

from __future__ import annotations

import pickle
import subprocess
import sys
import uuid
import zlib
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from taskmq.codec import Codec
from taskmq.errors import ConfigError, ContentRefused, DecodeError, EncodeError
from tests.unit.codec.bodies import EMPTY_EMBED, nested

CODEC = Codec()


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
        ("yaml", b"- [!!bool foo]\n- {}\n- {}"),
        ("yaml", b"- [!!int '']\n- {}\n- {}"),
        ("yaml", b"- [!!timestamp foo]\n- {}\n- {}"),
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
