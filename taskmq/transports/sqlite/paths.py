"""Which file a location names: web and worker processes must meet in one (DESIGN §6.1)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from taskmq.errors import ConfigError
from taskmq.transports.sqlite.files import check_link

HOME = "TASKMQ_HOME"


def resolve_path(
    location: str | os.PathLike[str],
    base_dir: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
) -> Path:
    """The absolute path of a database.

    A relative location counts from `$TASKMQ_HOME`, else from `base_dir` (the directory that holds the
    project, which the app knows), else from the current directory. Symlinks are followed, so that
    two names of one file share its lock and its log. Raises `ConfigError`.
    """
    text = os.fspath(location)
    if not text or "\0" in text:
        raise ConfigError(f"a database path is text that is not empty, got {text!r}")
    if text == ":memory:":
        raise ConfigError(
            "sqlite:///:memory: would be a database of its own in each process; use memory://"
        )
    path = Path(text).expanduser()
    if not path.is_absolute():
        home = (os.environ if environ is None else environ).get(HOME)
        path = Path(home or base_dir or os.getcwd()).expanduser() / path
    check_link(path)
    return Path(os.path.realpath(path))
