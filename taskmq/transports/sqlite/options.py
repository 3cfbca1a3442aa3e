"""The options of a `sqlite://` URL, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from taskmq.errors import ConfigError, nearest

Durability = Literal["normal", "full"]
_NAMES = ("durability", "mode", "network_fs", "busy_timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class SQLiteOptions:
    """What a URL may say after its `?`.

    durability    "normal": a submit that returned survives the death of any process, a power cut may
                  cost the last ones; "full": it survives a power cut too, at one fsync a commit
    mode          permissions of the files when they are created (octal in the URL)
    network_fs    whether a network file system is accepted, where SQLite's locks may not work
    busy_timeout  seconds to wait for another process's write before `TransportUnavailable`
    """

    durability: Durability = "normal"
    mode: int = 0o600
    network_fs: bool = False
    busy_timeout: float = 10.0

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SQLiteOptions:
        """From the text of a URL; `ConfigError` naming the option, the value and what is accepted."""
        for name in options:
            if name not in _NAMES:
                raise ConfigError(
                    f"sqlite URL: unknown option {name!r}, known are {', '.join(_NAMES)}."
                    f"{nearest(name, _NAMES)}"
                )
        durability = options.get("durability", "normal")
        if durability not in ("normal", "full"):
            raise _fault("durability", durability, "normal or full")
        network = options.get("network_fs", "refuse")
        if network not in ("refuse", "allow"):
            raise _fault("network_fs", network, "refuse or allow")
        return cls(
            durability="full" if durability == "full" else "normal",
            mode=_mode(options.get("mode", "0600")),
            network_fs=network == "allow",
            busy_timeout=_seconds(options.get("busy_timeout", "10")),
        )


def _mode(text: str) -> int:
    try:
        mode = int(text, 8)
    except ValueError:
        mode = -1
    # Others never get at messages: task arguments are often personal data.
    if not 0 <= mode <= 0o777 or mode & 0o600 != 0o600 or mode & 0o007:
        raise _fault("mode", text, "octal permissions for owner and group, such as 0600 or 0660")
    return mode


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise _fault("busy_timeout", text, "seconds from 0 to 3600")
    return seconds


def _fault(name: str, value: str, accepted: str) -> ConfigError:
    return ConfigError(f"sqlite URL: {name} is {accepted}, got {value!r}")
