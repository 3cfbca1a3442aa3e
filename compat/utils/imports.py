"""Importing by name, as settings and options of a project write it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from taskmq.compat.exceptions import ImproperlyConfigured

__all__ = ("symbol_by_name", "instantiate", "qualname", "import_from_cwd", "cwd_in_path")


def symbol_by_name(name: Any, *, package: str | None = None, default: Any = None) -> Any:
    """The object called `"module:attribute"` or `"module.attribute"`; other objects are returned.

    Raises `ImproperlyConfigured` naming what is missing, unless `default` is given. Only settings and
    options name objects this way, never a message.
    """
    if not isinstance(name, str):
        return name
    module_name, separator, attribute = name.partition(":")
    if not separator:
        module_name, _, attribute = name.rpartition(".")
    try:
        if not module_name:
            return import_module(attribute)
        module = import_module(module_name, package)
        return getattr(module, attribute) if attribute else module
    except (ImportError, AttributeError) as exc:
        if default is not None:
            return default
        raise ImproperlyConfigured(f"cannot import {name!r}: {exc}") from exc


def instantiate(name: Any, *args: Any, **kwargs: Any) -> Any:
    """Call the class called `name` with these arguments."""
    return symbol_by_name(name)(*args, **kwargs)


def qualname(obj: Any) -> str:
    """`module.Name` of a class, or of an object's class."""
    cls = obj if hasattr(obj, "__name__") else type(obj)
    return f"{cls.__module__}.{cls.__qualname__}"


@contextmanager
def cwd_in_path() -> Iterator[None]:
    """The current directory as the first place to import from, for the length of the block."""
    here = os.getcwd()
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def import_from_cwd(module: str, package: str | None = None) -> Any:
    """Import a module that may lie in the current directory."""
    with cwd_in_path():
        return import_module(module, package)
