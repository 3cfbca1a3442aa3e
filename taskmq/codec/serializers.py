"""The content types besides JSON: msgpack, yaml and pickle, each imported on first use and only when
configured.

A body in a content type that is not configured never reaches the module that could decode it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

from taskmq.codec.values import MAX_DEPTH, to_wire
from taskmq.errors import ConfigError, nearest
from taskmq.message import JSON

#: Name in the settings to the content type it is written under.
CONTENT_TYPES = {
    "json": JSON,
    "msgpack": "application/x-msgpack",
    "yaml": "application/x-yaml",
    "pickle": "application/x-python-serialize",
}
#: Content type (or name, as kombu takes both) to name.
NAMES = {
    **{name: name for name in CONTENT_TYPES},
    **{kind: name for name, kind in CONTENT_TYPES.items()},
    "application/msgpack": "msgpack",
}
_NEEDS = {"msgpack": "msgpack", "yaml": "yaml"}
_CONTAINERS = (list, tuple, dict)

Hook = Callable[[dict[str, Any]], Any]


class Serializer(Protocol):
    """One content type. `dump` and `load` raise `ValueError`, `TypeError` or `RecursionError`."""

    encoding: str

    def dump(self, value: Any) -> bytes:
        """The value as bytes."""
        ...

    def load(self, body: bytes, hook: Hook) -> Any:
        """The value of bytes; `hook` is given each mapping, to make a typed value of it."""
        ...


def check_installed(name: str, where: str) -> None:
    """`ConfigError` for a serializer that does not exist or is not installed. Imports nothing."""
    if name not in CONTENT_TYPES:
        likely = nearest(name, CONTENT_TYPES)
        raise ConfigError(f"{where}: one of {', '.join(CONTENT_TYPES)}, got {name!r}.{likely}")
    package = _NEEDS.get(name)
    if package is not None and find_spec(package) is None:
        raise ConfigError(
            f"{where}: {name} needs a package that is not installed; pip install 'taskmq[{name}]'"
        )


def serializer(name: str) -> Serializer:
    """The serializer of a configured name other than json."""
    if name == "msgpack":
        return Msgpack()
    return Yaml() if name == "yaml" else Pickle()


def check_depth(value: Any) -> None:
    """`ValueError` when lists and dicts are nested deeper than `MAX_DEPTH`. Takes no recursion."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for item in level:
            inner = item.values() if isinstance(item, dict) else item
            deeper.extend(child for child in inner if isinstance(child, _CONTAINERS))
        if not deeper:
            return
        level = deeper
    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")


class Msgpack:
    """Typed values as in JSON, but bytes in msgpack's own form."""

    encoding = "binary"

    def __init__(self) -> None:
        self._msgpack = import_module("msgpack")

    def dump(self, value: Any) -> bytes:
        body: bytes = self._msgpack.packb(value, use_bin_type=True, default=to_wire)
        # Afterwards: a list that contains itself has no depth to measure, and packb refuses it.
        check_depth(value)
        if not _readable_keys(value):
            raise TypeError("keys are text, numbers or None")
        return body

    def load(self, body: bytes, hook: Hook) -> Any:
        value = self._msgpack.unpackb(
            body, raw=False, strict_map_key=False, object_hook=hook, ext_hook=_no_extension
        )
        check_depth(value)
        return value


def _readable_keys(value: Any) -> bool:
    """Whether no key is a tuple, which msgpack writes as a list and cannot read back as a key."""
    if isinstance(value, dict):
        return all(not isinstance(k, tuple) and _readable_keys(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(_readable_keys(item) for item in value)
    return True


def _no_extension(code: int, data: bytes) -> Any:
    raise ValueError(f"msgpack extension type {code} is not known")


class Yaml:
    """Safe YAML only, without aliases: shared nodes unfold to far more than their bytes."""

    encoding = "utf-8"

    def __init__(self) -> None:
        yaml = import_module("yaml")

        class Dumper(yaml.SafeDumper):  # type: ignore[misc,name-defined]
            def ignore_aliases(self, data: Any) -> bool:
                return True

        class Loader(yaml.SafeLoader):  # type: ignore[misc,name-defined]
            def compose_node(self, parent: Any, index: Any) -> Any:
                if self.check_event(yaml.AliasEvent):
                    raise ValueError("YAML aliases are not accepted")
                return super().compose_node(parent, index)

        self._yaml = yaml
        self._dumper = Dumper
        self._loader = Loader

    def dump(self, value: Any) -> bytes:
        body: bytes = self._yaml.dump(
            _plain(value, 0), Dumper=self._dumper, encoding="utf-8", allow_unicode=True
        )
        return body

    def load(self, body: bytes, hook: Hook) -> Any:
        try:
            value = self._yaml.load(body, Loader=self._loader)
        except (self._yaml.YAMLError, LookupError, AttributeError) as exc:
            # Its constructors take a scalar for what its tag promises: `!!bool foo` is a KeyError there.
            raise ValueError(str(exc)) from exc
        check_depth(value)
        return _typed(value, hook)


def _plain(value: Any, depth: int) -> Any:
    """Lists, dicts with their keys and plain scalars, as YAML's safe subset has them."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if value is None or isinstance(value, (bool, bytes)):
        return value
    if isinstance(value, str):
        return _utf8(str(value))
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_plain(key, depth): _plain(item, depth + 1) for key, item in value.items()}
    return _plain(to_wire(value), depth)


def _utf8(text: str) -> str:
    """The text; `UnicodeEncodeError` for a lone surrogate, which YAML would write as an escape."""
    text.encode("utf-8")
    return text


def _typed(value: Any, hook: Hook) -> Any:
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, list):
        return [_typed(item, hook) for item in value]
    if isinstance(value, dict):
        return hook({key: _typed(item, hook) for key, item in value.items()})
    return value


class Pickle:
    """Pickle: whoever can send a message can run code in the process that decodes it."""

    encoding = "binary"

    def __init__(self) -> None:
        self._pickle = import_module("pickle")

    def dump(self, value: Any) -> bytes:
        try:
            body: bytes = self._pickle.dumps(value, protocol=4)
        except Exception as exc:  # __reduce__ of any class may raise anything
            raise TypeError(f"it cannot be pickled: {type(exc).__name__}: {exc}") from exc
        return body

    def load(self, body: bytes, hook: Hook) -> Any:
        try:
            return self._pickle.loads(body)
        except Exception as exc:  # a pickle runs code of its own, which may raise anything
            raise ValueError(f"it cannot be unpickled: {type(exc).__name__}: {exc}") from exc
