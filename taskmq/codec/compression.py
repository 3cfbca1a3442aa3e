"""Compressed bodies of Celery producers, unpacked under a limit.

A few kilobytes can unpack to gigabytes, so output stops one byte past the limit, whatever the header
promised.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import Any, Protocol

from taskmq.errors import DecodeError, TooLarge

# kombu's names. What it calls gzip is a zlib stream; 47 lets zlib read either.
_METHODS = {
    "application/x-gzip": "zlib",
    "gzip": "zlib",
    "zlib": "zlib",
    "application/x-bz2": "bz2",
    "bzip2": "bz2",
    "bzip": "bz2",
    "application/x-lzma": "lzma",
    "lzma": "lzma",
    "xz": "lzma",
}


class _Unpacker(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def decompress(body: bytes, compression: Any, limit: int) -> bytes:
    """`body` unpacked by the method the `compression` header names.

    Raises `DecodeError` for an unknown method or damaged data, `TooLarge` past `limit` bytes.
    """
    method = _METHODS.get(compression) if isinstance(compression, str) else None
    if method is None:
        raise DecodeError(
            f"header 'compression': one of {', '.join(_METHODS)}, got {compression!a:.80}"
        )
    unpacker: _Unpacker
    if method == "zlib":
        unpacker = zlib.decompressobj(wbits=47)
    elif method == "bz2":
        unpacker = bz2.BZ2Decompressor()
    else:
        # The memory limit keeps a header that asks for a huge dictionary from getting it.
        unpacker = lzma.LZMADecompressor(memlimit=max(64 * 1024 * 1024, 2 * limit))
    try:
        out = unpacker.decompress(body, limit + 1)
    except (zlib.error, OSError, EOFError, lzma.LZMAError, ValueError) as exc:
        raise DecodeError(f"the body is not {compression!r} data: {exc}") from exc
    if len(out) > limit:
        raise TooLarge(f"the unpacked body is over {limit:,} bytes (max_body)")
    if not unpacker.eof:
        raise DecodeError(f"the body ends in the middle of its {compression!r} data")
    return out
