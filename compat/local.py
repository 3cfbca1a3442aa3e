"""Objects that stand for another one which is looked up on every use.

A task declared on an app that is not complete yet, a shared task, and `current_app` are such
stand-ins: `isinstance`, `==`, `functools.wraps`, `inspect.signature` and `mock.patch("m.task.delay")`
work through them.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

__all__ = ("Proxy", "PromiseProxy", "maybe_evaluate", "try_import")


_OWN = frozenset({"_get_current_object", "__evaluated__", "__maybe_evaluate__"})


def _own(proxy: Proxy, name: str) -> Any:
    return object.__getattribute__(proxy, name)


class Proxy:
    """Stands for `find()`, which is called on every use.

    `name` and `doc` are known without looking, so that a traceback or a help text never does.
    """

    __slots__ = ("__weakref__", "_find", "_name", "_written")

    def __init__(self, find: Callable[[], Any], name: str | None = None, doc: str | None = None):
        object.__setattr__(self, "_find", find)
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_written", doc)

    def _get_current_object(self) -> Any:
        """The object stood for."""
        return _own(self, "_find")()

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        if name == "__name__" and _own(self, "_name") is not None:
            return _own(self, "_name")
        if name == "__doc__" and _own(self, "_written") is not None:
            return _own(self, "_written")
        return getattr(_own(self, "_get_current_object")(), name)

    # Python looks the following up on the type, so `__getattribute__` does not forward them.

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._get_current_object(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._get_current_object(), name)

    def __dir__(self) -> list[str]:
        return dir(self._get_current_object())

    def __repr__(self) -> str:
        return repr(self._get_current_object())

    def __str__(self) -> str:
        return str(self._get_current_object())

    def __bool__(self) -> bool:
        return bool(self._get_current_object())

    def __eq__(self, other: object) -> bool:
        return bool(self._get_current_object() == other)

    def __ne__(self, other: object) -> bool:
        return bool(self._get_current_object() != other)

    def __hash__(self) -> int:
        return hash(self._get_current_object())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._get_current_object()(*args, **kwargs)

    def __reduce__(self) -> Any:
        return self._get_current_object().__reduce__()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    # A signature, and a mapping of tasks or settings, are also reached through stand-ins.

    def __len__(self) -> int:
        return len(self._get_current_object())

    def __iter__(self) -> Any:
        return iter(self._get_current_object())

    def __contains__(self, key: Any) -> bool:
        return key in self._get_current_object()

    def __getitem__(self, key: Any) -> Any:
        return self._get_current_object()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._get_current_object()[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._get_current_object()[key]

    def __or__(self, other: Any) -> Any:
        return self._get_current_object() | other

    def __enter__(self) -> Any:
        return self._get_current_object().__enter__()

    def __exit__(self, *exc: Any) -> Any:
        return self._get_current_object().__exit__(*exc)


class PromiseProxy(Proxy):
    """A stand-in whose object is made once, at the first use or when the app is completed."""

    __slots__ = ("_made", "_making", "_value")

    def __init__(self, make: Callable[[], Any], name: str | None = None, doc: str | None = None):
        super().__init__(make, name, doc)
        object.__setattr__(self, "_made", False)
        object.__setattr__(self, "_value", None)
        object.__setattr__(self, "_making", RLock())

    def _get_current_object(self) -> Any:
        if not _own(self, "_made"):
            with _own(self, "_making"):
                if not _own(self, "_made"):
                    object.__setattr__(self, "_value", _own(self, "_find")())
                    object.__setattr__(self, "_made", True)
        return _own(self, "_value")

    def __evaluated__(self) -> bool:
        """Whether the object has been made."""
        return bool(_own(self, "_made"))

    def __maybe_evaluate__(self) -> Any:
        """The object, made now if it was not."""
        return self._get_current_object()


def maybe_evaluate(value: Any) -> Any:
    """The object behind a `PromiseProxy`, or the value itself."""
    return value.__maybe_evaluate__() if type(value) is PromiseProxy else value


def try_import(module: str, default: Any = None) -> Any:
    """Import a module by name, or return `default` when there is none."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        return default
