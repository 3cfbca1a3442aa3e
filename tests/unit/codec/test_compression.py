"""Compressed bodies: unpacked under a limit, damaged ones an error of that message."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from typing import Any

import pytest

from taskmq.codec import Codec
from taskmq.errors import DecodeError, TooLarge

JSON = "application/json"
CODEC = Codec()
BODY = b"[[1], {}, {}]"


@pytest.mark.parametrize(
    ("compression", "packed"),
    [
        ("application/x-gzip", zlib.compress(BODY)),
        ("gzip", gzip.compress(BODY, mtime=0)),
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
