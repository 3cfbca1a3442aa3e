"""The half of `Celery` that is its configuration: where settings come from and what follows from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timezone, tzinfo
from typing import Any, TypeVar

from taskmq.compat.app.bound import BoundToApp
from taskmq.compat.app.scale import Scale
from taskmq.compat.app.settings import Settings, Source
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.compat.utils.dispatch import Signal
from taskmq.compat.utils.imports import import_from_cwd, symbol_by_name

__all__ = ("Configured",)

V = TypeVar("V")


class Configured:
    """Holds `conf`, and what is worked out from it until a setting changes."""

    def __init__(self, source: Any, namespace: str | None, *, silent: bool) -> None:
        self.namespace = namespace
        self.on_after_configure = Signal(name="app.on_after_configure", providing_args={"source"})
        self._config_source = source
        self._config_silent = silent
        self._stale = False
        self._cache: dict[str, Any] = {}
        self._waiting: list[Callable[[], None]] = []
        self._conf = Settings(self._load_conf, self._conf_loaded, self._conf_changed)

    def on_configure(self) -> None:
        """Called before the settings are read for the first time; for subclasses."""

    @property
    def conf(self) -> Settings:
        """The settings, by attribute or item, in any of Celery's spellings."""
        return self._conf

    @conf.setter
    def conf(self, values: Any) -> None:
        self._conf.clear()
        self._conf.update(values)

    def config_from_object(
        self, obj: Any, silent: bool = False, force: bool = False, namespace: str | None = None
    ) -> None:
        """Read settings from a module, an object, a mapping, or the dotted name of one of these.

        With `namespace="CELERY"` they are the names in capitals that begin with `CELERY_`. Nothing is
        imported before the first setting is needed, unless `force`; with `silent` a source that does
        not exist is none.
        """
        self._config_source = obj
        self._config_silent = silent
        self.namespace = namespace or self.namespace
        self._conf.reload()
        if force:
            self._conf.get("broker_url")

    def config_from_envvar(
        self, variable_name: str, silent: bool = False, force: bool = False
    ) -> None:
        """Read settings from the module that an environment variable names."""
        module = os.environ.get(variable_name)
        if not module:
            if silent:
                return
            raise ImproperlyConfigured(
                f"the environment variable {variable_name!r} is not set, so it names no configuration module"
            )
        self.config_from_object(module, silent=silent, force=force)

    def add_defaults(self, values: Any) -> None:
        """Settings below everything the project writes; a function is called when they are needed."""
        self._conf.add_defaults(values() if callable(values) else values)

    @property
    def configured(self) -> bool:
        """Whether the settings have been read."""
        return bool(self._conf._loaded)

    def _load_conf(self) -> Source | None:
        self.on_configure()
        source = self._config_source
        if source is None:
            return None
        if isinstance(source, str):
            try:
                source = _import_settings(source)
            except (ImportError, ImproperlyConfigured) as exc:
                if not self._config_silent:
                    raise ImproperlyConfigured(
                        f"config_from_object({self._config_source!r}): {exc}"
                    ) from exc
                return None
        return Source(source, self.namespace)

    def when_configured(self, act: Callable[[], None]) -> None:
        """Do this now, or just after the settings are read where they have not been."""
        if self.configured:
            act()
        else:
            self._waiting.append(act)

    def _conf_loaded(self) -> None:
        while self._waiting:
            self._waiting.pop(0)()
        self.on_after_configure.send(sender=self, source=self._conf)

    def _conf_changed(self) -> None:
        self._stale = True
        self._cache.clear()

    @property
    def scale(self) -> Scale:
        """The direction of this project's priority numbers."""
        return self._cached("scale", lambda: Scale(self.conf.task_priority_scale))

    @property
    def timezone(self) -> tzinfo:
        """The zone of naive datetimes: `timezone`, else UTC."""
        return self._cached("timezone", self._timezone)

    def _timezone(self) -> tzinfo:
        name = self.conf.timezone
        if isinstance(name, tzinfo):
            # One of pytz must not be put into a datetime as it is; its name says which zone it is.
            name = getattr(name, "zone", None) or name
        if isinstance(name, tzinfo):
            return name
        if not name or str(name).upper() == "UTC":
            # With enable_utc off Celery takes naive times for local ones.
            if not name and not self.conf.enable_utc:
                local = datetime.now().astimezone().tzinfo
                assert local is not None
                return local
            return timezone.utc
        from zoneinfo import ZoneInfo

        try:
            return ZoneInfo(str(name))
        except (KeyError, ValueError) as exc:
            raise ImproperlyConfigured(
                f"timezone: a name like 'Europe/Paris', got {name!r}"
            ) from exc

    def annotations_for(self, task_cls: type[BoundToApp]) -> list[dict[str, Any]]:
        """What `task_annotations` says of a task: attribute to value, a name led by `@` to a wrapper."""
        found: list[dict[str, Any]] = []
        rules = self.conf.task_annotations or ()
        for rule in rules if isinstance(rules, (list, tuple)) else (rules,):
            rule = symbol_by_name(rule)
            if isinstance(rule, dict):
                found += [rule[name] for name in ("*", task_cls.name) if name in rule]
            else:
                for ask in ("annotate_any", "annotate"):
                    answer = getattr(rule, ask, None)
                    said = answer and (answer() if ask == "annotate_any" else answer(task_cls))
                    found += [said] if said else []
        return found

    def _cached(self, name: str, make: Callable[[], V]) -> V:
        found: V | None = self._cache.get(name)
        if found is None:
            found = self._cache[name] = make()
        return found


def _import_settings(name: str) -> Any:
    """A module, or an attribute of one as "module:attribute" or "module.attribute"."""
    if ":" in name:
        return symbol_by_name(name)
    try:
        return import_from_cwd(name)
    except ModuleNotFoundError as exc:
        missing = exc.name or ""
        if "." not in name or not (name == missing or name.startswith(missing + ".")):
            raise
        return symbol_by_name(name)
