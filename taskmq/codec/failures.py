"""An exception as bytes and back: what a task raised, told to whoever asks for its result.

Writing never raises, whatever the exception's class does. Reading trusts nothing: a class is taken
only from modules already imported, only if it is an `Exception`, and only where the caller's rule
allows it; a message never causes an import (CVE-2021-23727 was a call of `os.system` by this way).
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

from taskmq.codec.values import MAX_DEPTH, from_wire, json_depth, to_wire
from taskmq.errors import RemoteError
from taskmq.printable import printable

#: Bytes a stored failure, and characters a traceback, may take.
MAX_FAILURE = 64 * 1024
_MAX_LINE = 500

#: A class that has this attribute itself is written under that module instead of its own: for a class that
#: stands for one of another package, which readers know under that package's name.
WIRE_MODULE = "__wire_module__"

Allow = Callable[[str, str], bool]


def allow_modules(*prefixes: str) -> Allow:
    """A rule that allows these modules and what is inside them."""
    names = frozenset(prefixes)

    def allow(module: str, name: str) -> bool:
        return module in names or any(module.startswith(f"{prefix}.") for prefix in names)

    return allow


ALLOW_KNOWN: Allow = allow_modules("builtins", "taskmq")


def encode_failure(exc: BaseException) -> bytes:
    """`{"exc_type", "exc_module", "exc_message": [args]}` as JSON, at most 64 KiB. Never raises."""
    kind = type(exc)
    failure = {
        "exc_type": _text(kind, "__qualname__", "Exception"),
        "exc_module": _module(kind),
        "exc_message": _safe_args(exc),
    }
    body = json.dumps(failure, separators=(",", ":"), ensure_ascii=True).encode()
    if len(body) > MAX_FAILURE:
        failure["exc_message"] = [_clip(_storable(_message(exc)))]
        body = json.dumps(failure, separators=(",", ":")).encode()
    return body


def failure_line(exc: BaseException) -> str:
    """`ValueError: boom`: one line that is safe to print. Never raises."""
    name = _text(type(exc), "__name__", "Exception")
    message = _message(exc)
    return printable(_clip(f"{name}: {message}" if message else name, _MAX_LINE))


def format_traceback(exc: BaseException) -> str:
    """The traceback as text, the middle left out above 64 KiB. Never raises."""
    try:
        text = "".join(traceback.format_exception(exc))
    except Exception as broken:  # __str__ and friends of a task's own classes may raise anything
        text = (
            f"{failure_line(exc)}\n(no traceback: formatting it raised {type(broken).__name__})\n"
        )
    # SQL functions stop reading text at a NUL.
    text = _storable(text).replace("\x00", "\\x00")
    if len(text) <= MAX_FAILURE:
        return text
    # The end names the error, the beginning how the task was entered.
    head, tail = text[: MAX_FAILURE // 4], text[-(MAX_FAILURE * 5 // 8) :]
    return f"{head}\n… {len(text) - len(head) - len(tail):,} characters left out …\n{tail}"


def rebuild_failure(body: bytes | None, *, allow: Allow = ALLOW_KNOWN) -> Exception:
    """The exception a stored failure tells of: its own class where `allow(module, name)` says so.

    A class is used only if its module is imported already, it is an `Exception`, the rule allows both the
    module named and the one that defines it, and it can be made from its arguments by position; else
    the failure comes back as `RemoteError`. Never raises, never imports.
    """
    try:
        failure = json.loads(body or b"")
    except (ValueError, RecursionError):
        failure = None
    if not isinstance(failure, dict) or not isinstance(failure.get("exc_type"), str):
        return RemoteError("the task failed, and its failure cannot be read")
    name = failure["exc_type"]
    module = failure.get("exc_module")
    module = module if isinstance(module, str) else ""
    message = failure.get("exc_message", ())
    args = _values(message if isinstance(message, list) else [message])
    kind = _find(module, name, allow)
    if kind is not None:
        try:
            rebuilt: object = kind(*args)
        except Exception:  # a constructor with other parameters; reported as RemoteError below
            rebuilt = None
        if isinstance(rebuilt, kind):
            return rebuilt
    where = f"{module}." if module and module != "builtins" else ""
    told = ", ".join(arg if isinstance(arg, str) else repr(arg) for arg in args)
    text = f"{where}{name}: {told}" if told else f"{where}{name}"
    return RemoteError(_clip(text, MAX_FAILURE), exc_type=name, exc_module=module, exc_args=args)


def _find(module: str, name: str, allow: Allow) -> type[Exception] | None:
    if not module or not allow(module, name):
        return None
    home = sys.modules.get(module)
    if not isinstance(home, ModuleType):
        return None
    found: ModuleType | type = home
    for part in name.split("."):
        # Looked up in dictionaries only: getattr could run a module's __getattr__, which imports.
        if not part.isidentifier() or (part.startswith("__") and part.endswith("__")):
            return None
        inner = vars(found).get(part)
        if not isinstance(inner, type):
            return None
        found = inner
    if not isinstance(found, type) or not issubclass(found, Exception):
        return None
    if not allow(str(found.__module__), found.__qualname__):
        return None
    return found


def _values(args: list[Any]) -> tuple[Any, ...]:
    """The arguments with typed values restored; as they came where they are malformed."""
    try:
        return tuple(_restore(arg) for arg in args)
    except (ValueError, RecursionError):
        return tuple(args)


def _restore(value: Any) -> Any:
    if isinstance(value, list):
        return [_restore(item) for item in value]
    if isinstance(value, dict):
        return from_wire({key: _restore(item) for key, item in value.items()})
    return value


def _safe_args(exc: BaseException) -> list[Any]:
    try:
        args = tuple(exc.args)
        if isinstance(exc, OSError) and len(args) == 2 and exc.filename is not None:
            # OSError takes the file name out of its args, and without it the message loses it.
            args = (*args, exc.filename)
    except Exception:  # `args` may be anything a class made of it
        return [_message(exc)]
    return [_safe(arg) for arg in args[:32]]


def _safe(value: Any) -> Any:
    """The value as JSON has it, or its repr as text."""
    if isinstance(value, str):
        return _clip(_storable(value), MAX_FAILURE)
    try:
        text = json.dumps(value, allow_nan=False, default=to_wire, ensure_ascii=False).encode()
        return json.loads(text) if json_depth(text) <= MAX_DEPTH else _clip(_call(repr, value))
    except Exception:  # __json__ of any class may raise anything
        return _clip(_call(repr, value))


def _message(exc: BaseException) -> str:
    return _call(str, exc)


def _call(how: Callable[[Any], Any], value: Any) -> str:
    try:
        return str(how(value))
    except Exception as broken:  # __str__ and __repr__ of any class may raise anything
        return f"<{type(value).__name__}: {how.__name__}() raised {type(broken).__name__}>"


def _module(kind: type) -> str:
    # Its own only: what inherits from such a class is defined elsewhere.
    own = vars(kind).get(WIRE_MODULE)
    return own if isinstance(own, str) else _text(kind, "__module__", "builtins")


def _text(kind: type, attribute: str, fallback: str) -> str:
    value = getattr(kind, attribute, fallback)
    return value if isinstance(value, str) else fallback


def _storable(text: str) -> str:
    """The text with what UTF-8 does not have (lone surrogates) written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _clip(text: str, limit: int = MAX_FAILURE // 8) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"
