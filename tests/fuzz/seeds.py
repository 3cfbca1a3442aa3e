"""Writes the seeds of both targets into a folder: captured messages, and the shapes that matter.

python -m tests.fuzz.seeds FOLDER      makes FOLDER/bodies and FOLDER/headers
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

from tests.unit.wire.vectors import load

BODIES = (
    b'[[], {}, {"callbacks":null,"errbacks":null,"chain":null,"chord":null}]',
    b'[[{"__type__":"datetime","__value__":"2026-01-02T03:04:05Z"}],{},{}]',
    b'[[{"__type__":"decimal","__value__":"1.5"},{"__type__":"uuid","__value__":{"hex":"0"}}],{},{}]',
    b'[[{"__type__":"base64","__value__":"/w=="},{"__type__":"bytes","__value__":"x"}],{},{}]',
    b'[[{"__type__":"taskmq.encoded","__value__":{"content_type":"application/json","body":"MQ=="}}],{},{}]',
    b'[["\\ud83d\\ude00",1e308,-0.0,12345678901234567890],{"a":[true,null]},null]',
    b'{"exc_type":"ValueError","exc_module":"builtins","exc_message":["x"]}',
    b'{"task":"a","args":[],"kwargs":{}}',
    b"[" * 70 + b"]" * 70,
    b"\x93\x90\x80\xc0",
    b"- []\n- {}\n- {}\n",
)


def write(folder: Path) -> None:
    """Both corpora, one file for each seed."""
    bodies, headers = folder / "bodies", folder / "headers"
    for made in (bodies, headers):
        made.mkdir(parents=True, exist_ok=True)
    # The first byte chooses the content type and the second the compression; see fuzz_bodies.
    kinds = {b"\x93": 2, b"- ": 3}
    for number, body in enumerate(BODIES):
        kind = next((kinds[start] for start in kinds if body.startswith(start)), 0)
        for way, packed in ((0, body), (2, zlib.compress(body)), (3, body)):
            (bodies / f"{number}-{way}").write_bytes(bytes([kind, way]) + packed)
    for vector in load():
        envelope = json.dumps([vector.headers, vector.properties], default=str)
        (headers / vector.name).write_text(envelope)
        (bodies / vector.name).write_bytes(b"\x00\x00" + vector.body)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
