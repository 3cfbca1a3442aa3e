"""The codecs of one app: one for each serializer its `Config` lets it use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskmq.errors import ConfigError

if TYPE_CHECKING:
    from taskmq.codec.bodies import Codec
    from taskmq.config import Config


class Codecs:
    """Makes each codec at its first use."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._made: dict[str, Codec] = {}

    def named(self, serializer: str | None) -> Codec:
        """The codec of a serializer, None for the configured one.

        `ConfigError` when what it writes would not be read back.
        """
        config = self._config
        name = serializer or config.serializer
        codec = self._made.get(name)
        if codec is None:
            # Imported here: an app that declares nothing encodes nothing.
            from taskmq.codec.bodies import Codec

            if name != "json" and name not in config.accept_content:
                accepted = ", ".join(config.accept_content)
                raise ConfigError(
                    f"serializer {name!r} is not in Config.accept_content ({accepted}): workers would "
                    "refuse what it writes"
                )
            codec = self._made[name] = Codec(
                serializer=name, accept=tuple(config.accept_content), max_body=config.max_body
            )
        return codec
