"""`broker_url`: which transport it names, and its options.

memory://            messages of one process; memory://NAME is shared by name inside it
sqlite:///FILE       a file relative to the project, sqlite:////FILE an absolute one
                     ?durability=full ?mode=0660 ?busy_timeout=10 ?network_fs=allow
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from taskmq.errors import ConfigError, nearest

if TYPE_CHECKING:
    from random import Random

    from taskmq.clock import Clock
    from taskmq.transports.base import Settings, Transport

SCHEMES = ("sqlite", "memory")
#: What to do where a project names a broker that is not there yet, without a change to the project.
IN_PLACE_OF_A_BROKER = (
    "until then a file does it, without a change to the project: `taskmq -b sqlite:///taskmq.db …`, or "
    "TASKMQ_BROKER_URL=sqlite:///taskmq.db for every process"
)
# Celery's broker schemes: people will try them, and the answer should say what to do.
_KOMBU = frozenset(
    {"redis", "rediss", "sentinel", "amqp", "amqps", "pyamqp", "librabbitmq", "sqs", "filesystem"}
)
_USERINFO = re.compile(r"(?P<before>[A-Za-z][\w+.-]*://[^:/@\s]*:)(?P<password>[^\s;]*)(?=@)")
_SECRET = re.compile(
    r"(?i)(?P<name>[?&](?:[\w-]*(?:pass|passwd|password|secret|token|key))=)[^&;\s]*"
)

# Shared by name inside one process is what memory://NAME means, so the process has to remember them;
# weakly, so that messages nobody can reach any more are gone.
_NAMED: weakref.WeakValueDictionary[str, Transport] = weakref.WeakValueDictionary()
_NAMING = threading.Lock()


class TransportURL(NamedTuple):
    """A parsed `broker_url`: scheme, path or location, and options as text."""

    scheme: str
    location: str
    options: Mapping[str, str]


def parse_url(url: str, *, setting: str = "broker_url") -> TransportURL:
    """The parts of a URL; `ConfigError` naming the setting, the value and the accepted forms."""
    if not isinstance(url, str) or "://" not in url:
        likely = nearest(str(url).partition(":")[0], SCHEMES)
        raise ConfigError(
            f"{setting}: a URL such as sqlite:///taskmq.db or memory://, got {mask_url(str(url))!r}."
            f"{likely}"
        )
    where = f"{setting} {mask_url(url)!r}"
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    if scheme not in SCHEMES:
        raise ConfigError(f"{where}: {_unknown(scheme, setting)}")
    location, _, query = rest.partition("?")
    location = unquote(location)
    if scheme == "sqlite":
        location = _sqlite_path(location, where)
    return TransportURL(scheme=scheme, location=location, options=_options(query, where))


def _unknown(scheme: str, setting: str) -> str:
    accepted = " and ".join(f"{name}://" for name in SCHEMES)
    if scheme in _KOMBU:
        instead = IN_PLACE_OF_A_BROKER
        if setting == "result_url":
            instead = "without result_url the results are kept beside the messages"
        return f"{scheme}:// arrives with the kombu adapter, which this version does not have; {instead}"
    if scheme.endswith("+sqlite"):
        return f"TaskMQ's own file is sqlite:///FILE, not {scheme}://"
    return f"accepted are {accepted}.{nearest(scheme, SCHEMES)}"


def _sqlite_path(location: str, where: str) -> str:
    if not location.startswith("/") or location == "/":
        raise ConfigError(
            f"{where}: write sqlite:///FILE (three slashes) for a file relative to the project, "
            "sqlite:////FILE (four) for an absolute path"
        )
    return location[1:]


def _options(query: str, where: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise ConfigError(f"{where}: options are name=value, got {part!r}")
        if name in options:
            raise ConfigError(f"{where}: option {name!r} is given twice")
        options[unquote(name)] = unquote(value)
    return options


def mask_url(url: str) -> str:
    """The URL (or several, separated by `;`) with passwords and secret options replaced by `***`."""
    masked = _USERINFO.sub(r"\g<before>***", url)
    return _SECRET.sub(r"\g<name>***", masked)


def _memory(name: str, settings: Settings, clock: Clock, random: Random) -> Transport:
    from taskmq.transports.memory import MemoryTransport

    if not name:
        return MemoryTransport(settings, clock=clock, random=random)
    with _NAMING:
        found = _NAMED.get(name)
        if found is None:
            found = _NAMED[name] = MemoryTransport(settings, clock=clock, random=random)
        return found


def open_transport(
    url: str,
    settings: Settings,
    *,
    clock: Clock,
    random: Random,
    base_dir: str | os.PathLike[str] | None = None,
) -> Transport:
    """The transport of a URL, not yet opened. `base_dir` is what a relative path counts from.

    Raises `ConfigError` for a URL or an option that is not accepted.
    """
    parsed = parse_url(url)
    if parsed.scheme == "memory":
        if parsed.options:
            raise ConfigError(f"broker_url {url!r}: memory:// has no options")
        return _memory(parsed.location, settings, clock, random)
    # Imported here: whoever keeps messages in memory needs no SQLite.
    from taskmq.transports.sqlite import SQLiteTransport
    from taskmq.transports.sqlite.options import SQLiteOptions

    return SQLiteTransport(
        parsed.location,
        settings,
        clock=clock,
        random=random,
        options=SQLiteOptions.parse(parsed.options),
        base_dir=base_dir,
    )
