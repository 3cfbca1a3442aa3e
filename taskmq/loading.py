"""Finding the App a person names on the command line: `-A proj`, `-A proj.tasks`, `-A proj.tasks:app`.

Only the operator's own words lead to an import here; a message never does.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

from taskmq.app import App
from taskmq.errors import ConfigError, nearest

# Looked for in this order where only a module is named, as Celery users expect.
_USUAL_NAMES = ("app", "celery")
_USUAL_MODULES = ("celery", "tasks")


def load_app(spec: str) -> App:
    """The App that `spec` names: "proj", "proj.mod" or "proj.mod:name".

    In a module `app` and `celery` are looked for first, then the one App there is; in a package without
    one its modules `celery` and `tasks`. The current directory is put on the search path, as `celery -A`
    does. Raises `ConfigError` when there is no such module or App, or when it is a real Celery one; an
    error raised while the project's own code is imported is passed on as it is.
    """
    if not isinstance(spec, str) or not spec or spec.startswith((".", ":")) or spec.endswith(".py"):
        raise ConfigError(
            f"-A: a module like 'proj', 'proj.tasks' or 'proj.tasks:app', got {spec!r}"
        )
    _search_here()
    name, _, attribute = spec.partition(":")
    module = _import(name)
    if module is None and not attribute and "." in name:
        # "proj.tasks.app": the last word may be a name in the module.
        parent, _, attribute = name.rpartition(".")
        module = _import(parent)
        if module is not None and not hasattr(module, attribute):
            module = None
    if module is None:
        raise ConfigError(_no_module(name))
    if attribute:
        return _named(module, attribute, spec)
    found = _search(module)
    if found is None:
        raise ConfigError(_no_app(module, spec))
    return found


def install_alias() -> None:
    """Make `import celery` mean TaskMQ in this process (`--as-celery`), before any project code runs."""
    # By name: nothing on this floor knows the shim exists.
    importlib.import_module("taskmq.compat").install_as_celery()


def _search_here() -> None:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def _import(name: str) -> ModuleType | None:
    """The module, or None when it does not exist."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        # Only the absence of what was asked for is ours to explain; a missing import inside the project
        # is the project's error and keeps its own traceback.
        missing = exc.name or ""
        if name == missing or name.startswith(missing + "."):
            return None
        raise


def _search(module: ModuleType) -> App | None:
    """The App of a module or, where a package has none, of its usual modules."""
    for name in _USUAL_NAMES:
        value = getattr(module, name, None)
        if value is not None and not isinstance(value, ModuleType):
            app = _native(value, f"{module.__name__}:{name}")
            if app is not None:
                return app
    apps = _apps_in(module)
    if len({id(app) for app in apps.values()}) == 1:
        return next(iter(apps.values()))
    if not apps and hasattr(module, "__path__"):
        for name in _USUAL_MODULES:
            inner = _import(f"{module.__name__}.{name}")
            found = _search(inner) if inner is not None else None
            if found is not None:
                return found
    return None


def _apps_in(module: ModuleType) -> dict[str, App]:
    found = {}
    for name, value in list(vars(module).items()):
        app = _native(value, f"{module.__name__}:{name}") if not name.startswith("__") else None
        if app is not None:
            found[name] = app
    return found


def _named(module: ModuleType, attribute: str, spec: str) -> App:
    value: Any = module
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            known = [name for name in vars(module) if not name.startswith("_")]
            raise ConfigError(
                f"-A {spec}: module {module.__name__!r} ({_file(module)}) has no {part!r}."
                f"{nearest(part, known)}"
            ) from None
    app = _native(value, spec)
    if app is None:
        raise ConfigError(
            f"-A {spec}: {attribute!r} is no taskmq App but of type {type(value).__name__}"
        )
    return app


def _native(value: Any, where: str) -> App | None:
    """The App behind a value, None for anything else; `ConfigError` for a real Celery app."""
    # Looked up on the class: a mock or a lazy proxy answers to any name on the instance.
    door = getattr(type(value), "__taskmq_app__", None)
    if door is not None and not isinstance(value, type):
        app = door(value)
        if isinstance(app, App):
            return app
    for cls in type(value).__mro__:
        if cls.__name__ == "Celery" and cls.__module__.split(".")[0] == "celery":
            raise ConfigError(
                f"-A: {where} is a Celery app of the installed celery package. Start with --as-celery, "
                "which runs the project unchanged, or import it from TaskMQ: "
                "`from taskmq.compat import Celery`"
            )
    return None


def _no_module(name: str) -> str:
    first = name.split(".")[0]
    where = ", ".join(path or "." for path in sys.path[:3])
    if first != name and first in sys.modules:
        where = _file(sys.modules[first])
    return f"-A: there is no module {name!r}; looked in {where} and the installed packages"


def _no_app(module: ModuleType, spec: str) -> str:
    apps = sorted(_apps_in(module))
    if apps:
        choices = ", ".join(f"{module.__name__}:{name}" for name in apps)
        return f"-A {spec}: more than one App is there; name one of {choices}"
    return (
        f"-A {spec}: no App in module {module.__name__!r} ({_file(module)}); looked for "
        f"{', '.join(_USUAL_NAMES)} and for any taskmq App"
        + (
            f", and in its modules {', '.join(_USUAL_MODULES)}"
            if hasattr(module, "__path__")
            else ""
        )
    )


def _file(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    return file or ", ".join(getattr(module, "__path__", [])) or "built in"
