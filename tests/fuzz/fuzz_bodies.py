"""Coverage-guided fuzzing of body decoding: any bytes are arguments, or a `MessageError`. See README.md.

The first two bytes choose content type, encoding and compression; the rest is the body. What decodes is
encoded again and must decode to the same, so that a retry never changes what a task is called with.
"""

from __future__ import annotations

import os
import sys
import zlib

import atheris

with atheris.instrument_imports(include=["taskmq", "json", "base64", "_strptime", "uuid"]):
    from taskmq.codec import Codec, rebuild_failure
    from taskmq.codec.bodies import decode_json
    from taskmq.errors import MessageError

# Small, so that the limit is reached by what a fuzzer can write.
MAX_BODY = 4096
CODEC = Codec(accept=("json", "msgpack", "yaml"), max_body=MAX_BODY)
CONTENT_TYPES = (
    "application/json",
    "application/json",
    "application/x-msgpack",
    "application/x-yaml",
    "application/x-python-serialize",
    "text/plain",
)
ENCODINGS = ("utf-8", "binary", "utf-16", "")
COMPRESSIONS = (None, None, "zlib", "deflated here", "bzip2", "xz")


def one_input(data: bytes) -> None:
    """Fails on anything that is neither a body nor one of the documented errors."""
    if len(data) < 2:
        return
    content_type = CONTENT_TYPES[data[0] % len(CONTENT_TYPES)]
    encoding = ENCODINGS[(data[0] >> 4) % len(ENCODINGS)]
    compression = COMPRESSIONS[data[1] % len(COMPRESSIONS)]
    body = data[2:]
    if compression == "deflated here":
        # A fuzzer seldom finds a checksum: this one is made for it.
        body, compression = zlib.compress(body), "zlib"
    try:
        args, kwargs, embed = CODEC.decode_body(body, content_type, encoding, compression)
    except MessageError as exc:
        if not str(exc):
            raise AssertionError("an error without a reason") from exc
    else:
        _again(args, kwargs, embed)
    rebuild_failure(body)
    try:
        decode_json(body.decode("utf-8", "surrogatepass"))
    except (MessageError, UnicodeDecodeError):
        pass


def _again(args: list[object], kwargs: dict[str, object], embed: dict[str, object]) -> None:
    try:
        body, content_type, encoding = CODEC.encode_body(args, kwargs, embed)
    except MessageError:
        return  # msgpack and YAML have values and sizes that JSON does not
    back = CODEC.decode_body(body, content_type, encoding)
    if repr(CODEC.encode_body(*back)[0]) != repr(body):
        raise AssertionError(f"{body!r} came back as {back!r}")


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
