"""Importing the modules that hold tasks: `imports`, `include` and what `autodiscover_tasks` names.

Done when a worker or a command opens the app, and never by a process that only submits (a web
server), which imports what it uses anyway.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from taskmq.compat import signals
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.compat.utils.functional import maybe_list
from taskmq.compat.utils.imports import cwd_in_path

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("Loader",)

log = logging.getLogger("taskmq.compat.loader")

Packages = Iterable[str] | Callable[[], Iterable[str]] | None


class Loader:
    """Imports the task modules of one app, once."""

    def __init__(self, app: Celery) -> None:
        self.app = app
        self.task_modules: set[str] = set()
        self._wanted: list[tuple[Packages, str | None]] = []
        self._importing = False

    def discover_later(self, packages: Packages, related_name: str | None) -> None:
        """Note what `autodiscover_tasks` names, until the task modules are needed."""
        self._wanted.append((packages, related_name))

    def import_default_modules(self) -> list[ModuleType]:
        """Import everything that is named and not imported yet. An error in one of them is passed on."""
        if self._importing:
            # A task module that opens the app while it is imported itself.
            return []
        self._importing = True
        try:
            modules = [self.import_task_module(name) for name in self._default_modules()]
            wanted, self._wanted = self._wanted, []
            for packages, related_name in wanted:
                modules += self.discover(packages, related_name)
            for _, answer in signals.import_modules.send(sender=self.app):
                if isinstance(answer, Exception):
                    raise answer
        finally:
            self._importing = False
        return modules

    def import_task_module(self, name: str) -> ModuleType:
        """Import one module of tasks; the current directory counts too."""
        self.task_modules.add(name)
        return self.import_from_cwd(name)

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Import a module."""
        return import_module(name, package)

    def import_from_cwd(self, name: str) -> ModuleType:
        """Import a module that may lie in the current directory."""
        with cwd_in_path():
            return import_module(name)

    def discover(self, packages: Packages, related_name: str | None) -> list[ModuleType]:
        """Import `<package>.<related_name>` of every package that has one, or the packages themselves."""
        found = []
        for package in self._packages(packages):
            module = _related(package, related_name)
            if module is not None:
                self.task_modules.add(module.__name__)
                found.append(module)
        return found

    def _default_modules(self) -> list[str]:
        conf = self.app.conf
        names = [*(maybe_list(conf.imports) or ()), *(maybe_list(conf.include) or ())]
        return list(dict.fromkeys(names))

    def _packages(self, packages: Packages) -> list[str]:
        if callable(packages):
            packages = packages()
        if packages is None:
            return _django_packages()
        if isinstance(packages, str) or not all(isinstance(name, str) for name in packages):
            raise ImproperlyConfigured(
                f"autodiscover_tasks: a list of package names or a function that gives one, got {packages!r}"
            )
        return list(packages)


def _django_packages() -> list[str]:
    if not os.environ.get("DJANGO_SETTINGS_MODULE"):
        log.warning(
            "autodiscover_tasks() without packages looks through Django's INSTALLED_APPS, and "
            "DJANGO_SETTINGS_MODULE is not set: nothing was imported"
        )
        return []
    django: Any = import_module("django")
    apps: Any = import_module("django.apps").apps
    if not apps.ready:
        django.setup()
    return [config.name for config in apps.get_app_configs()]


def _related(package: str, related_name: str | None) -> ModuleType | None:
    """The module of that name in a package, None where the package has none."""
    try:
        home = import_module(package)
    except ModuleNotFoundError as exc:
        # "shop.apps.ShopConfig": a class in a package, as Django's INSTALLED_APPS may have it.
        parent = package.rpartition(".")[0]
        if not parent or not _is_missing(exc, package):
            raise
        package = parent
        home = import_module(package)
    if related_name is None:
        return home
    name = f"{package}.{related_name}"
    try:
        return import_module(name)
    except ModuleNotFoundError as exc:
        if _is_missing(exc, name):
            return None
        raise


def _is_missing(exc: ModuleNotFoundError, name: str) -> bool:
    # Only the absence of the module itself; one that imports something missing is an error of its own.
    missing = exc.name or ""
    return name == missing or name.startswith(missing + ".")
