"""`import celery` meaning TaskMQ, for projects and libraries that cannot be edited.

A finder at the front of `sys.meta_path` answers `celery` and `celery.x` with the very modules of
`taskmq.compat` and `taskmq.compat.x`: one set of classes under two names. It is opt-in
(`install_as_celery()`, `TASKMQ_AS_CELERY=1`, `taskmq --as-celery`), wins over an installed Celery, and
refuses to mix with one that was imported already. Precedent: PyMySQL's `install_as_MySQLdb()`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from taskmq.compat._missing import missing_module
from taskmq.compat._version import __version__
from taskmq.compat.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    from importlib.metadata import Distribution

__all__ = ("install_as_celery", "install_if_asked", "is_installed")

_THEIRS = "celery"
_OURS = "taskmq.compat"
#: Set for child processes that are started anew: they install the alias before they import the project.
VARIABLE = "TASKMQ_AS_CELERY"


def install_as_celery() -> None:
    """Make `import celery` mean `taskmq.compat` in this process and in its children. Idempotent.

    Raises `ImproperlyConfigured` when the real Celery was imported before: two Celerys in one process
    would not see each other's tasks.
    """
    os.environ[VARIABLE] = "1"
    if is_installed():
        return
    loaded = sys.modules.get(_THEIRS)
    if loaded is not None and loaded.__name__ != _OURS:
        raise ImproperlyConfigured(
            f"the installed celery ({getattr(loaded, '__file__', 'no file')}) was imported before "
            "install_as_celery(); call it first, before anything that imports celery"
        )
    sys.meta_path.insert(0, AliasFinder())


def install_if_asked() -> None:
    """Install the alias where `TASKMQ_AS_CELERY` is set, as it is in every child of a process that has it.

    Not where the real Celery was imported before: then this process was not meant.
    """
    if (
        os.environ.get(VARIABLE, "").lower() in ("1", "true", "yes", "on")
        and _THEIRS not in sys.modules
    ):
        install_as_celery()


def is_installed() -> bool:
    """Whether the alias is installed in this process."""
    # By name: this module may have been run twice (as `compat.alias` from a checkout).
    return any(type(finder).__name__ == "AliasFinder" for finder in sys.meta_path)


class AliasFinder(MetaPathFinder):
    """Finds `celery.*` in `taskmq.compat.*`, and a distribution of that name."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname != _THEIRS and not fullname.startswith(_THEIRS + "."):
            return None
        ours = _OURS + fullname[len(_THEIRS) :]
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as exc:
            if exc.name is None or not (ours == exc.name or ours.startswith(exc.name + ".")):
                raise
            # Never on to the next finder: a stray module of an installed Celery must not get in.
            raise _not_found(fullname) from None
        return ModuleSpec(fullname, _SameModule(module), is_package=hasattr(module, "__path__"))

    def find_distributions(self, context: Any = None) -> Iterable[Distribution]:
        """A distribution "celery", for libraries that ask which version is installed."""
        name = getattr(context, "name", None)
        if name is None or name.lower() == _THEIRS:
            yield _distribution()


class _SameModule(Loader):
    """Hands out a module that exists, and leaves it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        # The import system writes these into whatever it loads.
        self._own = {
            name: getattr(module, name)
            for name in ("__spec__", "__loader__", "__package__", "__path__", "__file__")
            if hasattr(module, name)
        }

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        for name, value in self._own.items():
            setattr(module, name, value)


def _distribution() -> Distribution:
    """What `importlib.metadata` is told of Celery: whoever asks has loaded it, and `email` with it."""
    from importlib.metadata import Distribution

    class Celery(Distribution):
        def read_text(self, filename: str) -> str | None:
            if filename in ("METADATA", "PKG-INFO"):
                return f"Metadata-Version: 2.1\nName: celery\nVersion: {__version__}\n"
            return None

        def locate_file(self, path: Any) -> Any:
            return Path(__file__).parent / path

    return Celery()


def _not_found(fullname: str) -> ModuleNotFoundError:
    error = missing_module(fullname[len(_THEIRS) + 1 :], fullname)
    return error or ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
