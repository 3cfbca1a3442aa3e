"""Hostile bodies by name, and strategies that make more of them (reliability row 33)."""

from __future__ import annotations

import bz2
import functools
import json
import lzma
import os
import pickle
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from hypothesis import strategies as st

EMBED = b'{"callbacks":null,"errbacks":null,"chain":null,"chord":null}'
_TYPED = b'{"__type__":"bytes","__value__":"x"}'
VALID = b'[[1,"a\xc3\xa9\\ud83d\\ude00"],{"k":[1.5,null,%s]},%s]' % (_TYPED, EMBED)
JSON = "application/json"
PICKLE = "application/x-python-serialize"


class Hostile(NamedTuple):
    """A body with what its producer says of it."""

    body: bytes
    content_type: str = JSON
    content_encoding: str = "utf-8"
    headers: Mapping[str, Any] = {}


class Bomb:
    """A pickle that leaves a file where it is opened."""

    def __init__(self, canary: str) -> None:
        self.canary = canary

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.canary}",)


@functools.cache
def bombs() -> tuple[bytes, bytes, bytes]:
    """40 MB of spaces in a few kilobytes; packing them takes longer than any test of them."""
    spaces = b" " * 40_000_000
    return zlib.compress(spaces), bz2.compress(spaces), lzma.compress(spaces, preset=0)


def hostile(canary: str) -> dict[str, Hostile]:
    """Every kind of row 33; `canary` is the file that appears if one of them is executed."""
    bomb = pickle.dumps(((Bomb(canary),), {}, {}))
    gzip_bomb, bzip2_bomb, xz_bomb = bombs()
    return {
        "empty": Hostile(b""),
        "no JSON": Hostile(b"hello"),
        "truncated": Hostile(VALID[:-7]),
        "trailing": Hostile(VALID + b"]"),
        "no list": Hostile(b'"text"'),
        "two parts": Hostile(b"[[],{}]"),
        "args no list": Hostile(b'["ab",{},{}]'),
        "kwargs no object": Hostile(b"[[],[1],{}]"),
        "embed no object": Hostile(b"[[],{},[1]]"),
        "protocol 1": Hostile(b'{"task":"jobs.echo","id":"x","args":[],"kwargs":{}}'),
        "nested 100 k": Hostile(b"[" * 100_000),
        "nested objects 50 k": Hostile(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
        "nested and closed": Hostile(b"[" * 100_000 + b"]" * 100_000),
        "an int of 5,000 digits": Hostile(b"[[" + b"1" * 5000 + b"],{},{}]"),
        "NaN": Hostile(b"[[NaN],{},{}]"),
        "Infinity": Hostile(b"[[-Infinity],{},{}]"),
        "1e999": Hostile(b"[[1e999],{},{}]"),
        "a NUL": Hostile(b'[["\x00"],{},{}]'),
        "NULs": Hostile(b"\x00" * 64),
        "no UTF-8": Hostile(b'[["\xff\xfe"],{},{}]'),
        "UTF-16": Hostile(json.dumps([[], {}, {}]).encode("utf-16"), content_encoding="utf-16"),
        "a lone surrogate": Hostile(b'[["\\ud800"],{},{}]'),
        "an encoded surrogate": Hostile(b'[["\xed\xa0\x80"],{},{}]'),
        "an unknown type": Hostile(b'[[{"__type__":"os.system","__value__":"id"}],{},{}]'),
        "a wrong typed value": Hostile(b'[[{"__type__":"datetime","__value__":5}],{},{}]'),
        "a pickle in JSON": Hostile(
            b'[[{"__type__":"taskmq.encoded","__value__":{"content_type":"'
            + PICKLE.encode()
            + b'","body":"gASVAA=="}}],{},{}]'
        ),
        "pickle": Hostile(bomb, PICKLE, "binary"),
        "pickle by name": Hostile(bomb, "pickle", "binary"),
        "packed pickle": Hostile(zlib.compress(bomb), PICKLE, "binary", {"compression": "zlib"}),
        "yaml": Hostile(b"!!python/object/apply:os.system [id]", "application/x-yaml"),
        "a codec that would be imported": Hostile(VALID, content_encoding="antigravity"),
        "gzip bomb": Hostile(gzip_bomb, headers={"compression": "application/x-gzip"}),
        "bzip2 bomb": Hostile(bzip2_bomb, headers={"compression": "bzip2"}),
        "xz bomb": Hostile(xz_bomb, headers={"compression": "xz"}),
        "torn gzip": Hostile(zlib.compress(VALID)[:-4], headers={"compression": "zlib"}),
        "unknown compression": Hostile(VALID, headers={"compression": "__import__"}),
        "compression of another type": Hostile(VALID, headers={"compression": ["zlib"]}),
        "a callback that is none": Hostile(b'[[],{},{"callbacks":[5]}]'),
        "a chain that is none": Hostile(b'[[],{},{"chain":"os.system"}]'),
    }


_PIECES = (
    *(b"[", b"{", b"]", b'"', b"\\u", b"\\ud800", b"NaN", b"1e999", b"\x00", b"\xff", b"[" * 500),
    *(b"9" * 5000, b'"k":1,"k":2', b'{"__type__":"uuid","__value__":{}}', b"null", b"-"),
)
_JUNK = st.binary(max_size=6) | st.sampled_from(_PIECES)

#: Any bytes at all, a valid body with a piece replaced, cut off, or said twice.
BODIES = (
    st.binary(max_size=200)
    | st.builds(
        lambda at, junk, cut: VALID[:at] + junk + VALID[at + cut :],
        st.integers(0, len(VALID)),
        _JUNK,
        st.integers(0, 6),
    )
    | st.integers(0, len(VALID)).map(lambda end: VALID[:end])
    | st.integers(1, 3).map(lambda times: VALID * times)
)
#: What a producer may say of a body, rightly or wrongly.
SAID = st.fixed_dictionaries(
    {},
    optional={
        "content_type": st.sampled_from(
            [JSON, PICKLE, "pickle", "application/x-yaml", "", "x\x00"]
        ),
        "content_encoding": st.sampled_from(["utf-8", "binary", "utf-16", "rot13", ""]),
        "headers": st.fixed_dictionaries(
            {},
            optional={
                "compression": st.sampled_from(["zlib", "bzip2", "xz", "no", 5, None, [], {}]),
                "group": st.none() | st.text(max_size=3) | st.integers(),
                "group_index": st.none() | st.integers() | st.text(max_size=2),
            },
        ),
    },
)
