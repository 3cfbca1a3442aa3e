"""Bodies, results and failures as bytes and back.

Bytes are decoded only in the process that runs a task or asks for its result; everything between
them moves bytes. `values` says which values JSON carries, `serializers` holds what is used only when
configured, `bodies` is the codec itself, `configured` which codecs an app has, `failures` is how an
exception crosses. The names below load on first use: who only declares an app needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taskmq.codec.bodies import Codec as Codec
    from taskmq.codec.configured import Codecs as Codecs
    from taskmq.codec.failures import allow_modules as allow_modules
    from taskmq.codec.failures import encode_failure as encode_failure
    from taskmq.codec.failures import failure_line as failure_line
    from taskmq.codec.failures import format_traceback as format_traceback
    from taskmq.codec.failures import rebuild_failure as rebuild_failure
    from taskmq.codec.values import as_json as as_json

_WHERE = {
    "Codec": "bodies",
    "Codecs": "configured",
    "encode_failure": "failures",
    "rebuild_failure": "failures",
    "allow_modules": "failures",
    "failure_line": "failures",
    "format_traceback": "failures",
    "as_json": "values",
}

__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        from importlib import import_module

        value = getattr(import_module(f"taskmq.codec.{_WHERE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'taskmq.codec' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
