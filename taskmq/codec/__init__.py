"""Bodies, results and failures as bytes and back.

Bytes are decoded only in the process that runs a task or asks for its result; everything between
them moves bytes. `values` says which values JSON carries, `serializers` holds what is used only when
configured, `bodies` is the codec itself, `configured` which codecs an app has, `failures` is how an
exception crosses.
"""

from __future__ import annotations

from taskmq.codec.bodies import Codec
from taskmq.codec.configured import Codecs
from taskmq.codec.failures import (
    allow_modules,
    encode_failure,
    failure_line,
    format_traceback,
    rebuild_failure,
)
from taskmq.codec.values import as_json

__all__ = [
    "Codec",
    "Codecs",
    "encode_failure",
    "rebuild_failure",
    "allow_modules",
    "failure_line",
    "format_traceback",
    "as_json",
]
