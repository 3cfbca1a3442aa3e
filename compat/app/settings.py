"""`app.conf`: the settings of an app, in all of Celery's spellings, read through to where they stand.

A value is looked up in what the program set (`app.conf.x = y`, `conf.update`), then in the source
that `config_from_object` named, then in added defaults, then in Celery's own. The source is opened at
the first read, not before, and is read again each time, so a changed settings object is seen.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from taskmq.compat.app.defaults import NEW_NAMES, OPTIONS, canonical
from taskmq.compat.exceptions import ImproperlyConfigured

__all__ = ("Settings", "Source")

_MISSING = object()
# Celery lets these two variables win over everything else.
_ENVIRONMENT = {"broker_url": "CELERY_BROKER_URL", "result_backend": "CELERY_RESULT_BACKEND"}
_SECRET = ("password", "secret", "token", "key", "url", "backend")


class Source:
    """A module, object or mapping that holds settings, with the prefix they carry there.

    With a prefix (`namespace="CELERY"`) settings are `CELERY_` and the name in capitals; without one they
    are the lower-case names, or the names before Celery 4 in capitals.
    """

    def __init__(self, origin: Any, namespace: str | None = None) -> None:
        self.origin = origin
        self.prefix = f"{namespace.rstrip('_')}_" if namespace else ""
        self._is_mapping = isinstance(origin, Mapping)
        self._spelt: dict[tuple[str, str], tuple[str, ...]] = {}

    def get(self, name: str, key: str) -> Any:
        """The value of a setting asked for as `key`; `_MISSING` when it is not there."""
        found: dict[str, Any] = {}
        spellings = self._spelt.get((name, key))
        if spellings is None:
            spellings = self._spelt[name, key] = self._spellings(name, key)
        for spelling in spellings:
            value = self._read(spelling)
            if value is not _MISSING:
                found[spelling] = value
        if not found:
            return _MISSING
        values = list(found.values())
        if len(found) > 1 and any(value != values[0] for value in values[1:]):
            both = " and ".join(f"{k}={v!r}" for k, v in found.items())
            raise ImproperlyConfigured(
                f"one setting, two spellings, two values: {both}; keep one of them"
            )
        return values[0]

    def names(self) -> Iterator[str]:
        """The settings that stand here, by name; unknown ones as they are written."""
        names = self.origin if self._is_mapping else dir(self.origin)
        for name in names:
            if not isinstance(name, str) or name.startswith("_"):
                continue
            if self.prefix:
                if name.startswith(self.prefix):
                    rest = name[len(self.prefix) :]
                    yield rest.lower() if rest.lower() in OPTIONS else rest
            else:
                yield canonical(name) if name in NEW_NAMES else name

    def _spellings(self, name: str, key: str) -> tuple[str, ...]:
        if self.prefix:
            spellings = [self.prefix + name.upper(), self.prefix + key]
        elif name in OPTIONS:
            spellings = [name, *OPTIONS[name].old]
        else:
            spellings = [key]
        return tuple(dict.fromkeys(spellings))

    def _read(self, spelling: str) -> Any:
        if self._is_mapping:
            return self.origin.get(spelling, _MISSING)
        return getattr(self.origin, spelling, _MISSING)


class Settings(MutableMapping[str, Any]):
    """Attributes and items alike; unknown names are kept, as projects keep their own beside Celery's.

    `load` opens the source at the first read and is called once, `loaded` just after it; `changed` is
    called after every write.
    """

    def __init__(
        self,
        load: Callable[[], Source | None],
        loaded: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        own = self.__dict__
        own["_load"] = load
        own["_after_load"] = loaded
        own["_changed"] = changed
        own["_source"] = None
        own["_loaded"] = False
        own["changes"] = {}
        own["_added"] = []
        own["defaults"] = {o.name: copy.copy(o.default) for o in OPTIONS.values()}

    # -- reading ----------------------------------------------------------------------------------

    def _configured(self) -> None:
        if not self._loaded:
            self.__dict__["_source"] = self._load()
            # Set before: a receiver of on_after_configure reads settings too.
            self.__dict__["_loaded"] = True
            self._after_load()

    def _written(self, key: str) -> Any:
        """The value the project gave, `_MISSING` for none."""
        self._configured()
        name = canonical(key)
        if name in _ENVIRONMENT and os.environ.get(_ENVIRONMENT[name]):
            return os.environ[_ENVIRONMENT[name]]
        if name in self.changes:
            return self.changes[name]
        layers = [self._source] if self._source is not None else []
        for layer in (*layers, *self._added):
            value = layer.get(name, key)
            if value is not _MISSING:
                return value
        return _MISSING

    def __getitem__(self, key: str) -> Any:
        value = self._written(key)
        if value is _MISSING:
            return self.defaults[canonical(key)]
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this configuration has no setting {name!r}") from None

    def __iter__(self) -> Iterator[str]:
        self._configured()
        names = dict.fromkeys(self.changes)
        for layer in ([self._source] if self._source is not None else []) + self._added:
            names.update(dict.fromkeys(layer.names()))
        names.update(dict.fromkeys(self.defaults))
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def value_set_for(self, key: str) -> bool:
        """Whether the project gave this setting a value, be it the default one."""
        return self._written(key) is not _MISSING

    def written(self) -> list[str]:
        """The names the project gave values to."""
        return [name for name in self if self.value_set_for(name)]

    def first(self, *keys: str) -> Any:
        """The first of these settings whose value is not None."""
        return next((v for v in (self.get(key) for key in keys) if v is not None), None)

    def find_value_for_key(self, name: str, namespace: str = "celery") -> Any:
        """The value of a setting named without its group: `("always_eager", "task")`."""
        return self[f"{namespace}_{name}"] if f"{namespace}_{name}" in self else self[name]

    def get_by_parts(self, *parts: str) -> Any:
        """The value of the setting whose name is these parts joined by `_`."""
        return self["_".join(part for part in parts if part)]

    # -- writing ----------------------------------------------------------------------------------

    def __setitem__(self, key: str, value: Any) -> None:
        self.changes[canonical(key)] = value
        self._changed()

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delitem__(self, key: str) -> None:
        del self.changes[canonical(key)]
        self._changed()

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None

    def add_defaults(self, values: Any) -> None:
        """Values below everything the project writes and above Celery's own."""
        self._added.insert(0, values if isinstance(values, Source) else Source(values))
        self._changed()

    def clear(self) -> None:
        """Forget what the program set; the source and the defaults stay."""
        self.changes.clear()
        self._changed()

    def reload(self) -> None:
        """Open the source anew at the next read."""
        self.__dict__["_loaded"] = False
        self.__dict__["_source"] = None
        self._changed()

    # -- showing ----------------------------------------------------------------------------------

    def without_defaults(self) -> dict[str, Any]:
        """Only what the project gave values to."""
        return {name: self[name] for name in self.written()}

    def table(self, with_defaults: bool = False, censored: bool = True) -> dict[str, Any]:
        """Setting to value, for people; what looks secret is masked."""
        names = sorted(self if with_defaults else self.written())
        return {
            name: "********" if censored and self[name] and _looks_secret(name) else self[name]
            for name in names
            if not callable(self[name])
        }

    def humanize(self, with_defaults: bool = False, censored: bool = True) -> str:
        """The table as lines of text."""
        table = self.table(with_defaults, censored)
        return "\n".join(f"{name}: {value!r}" for name, value in table.items())

    def __repr__(self) -> str:
        return f"<Settings: {len(self.changes)} set by the program>"

    def __reduce__(self) -> Any:
        raise TypeError("app.conf cannot be pickled; pickle dict(app.conf.without_defaults())")


def _looks_secret(name: str) -> bool:
    return any(part in name.lower() for part in _SECRET)
