"""Logging of a worker process, where the project has not set it up itself."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from taskmq.errors import ConfigError
from taskmq.logformat import SafeFormatter

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "FATAL")
# One line per task: at a few thousand a second they cost a fifth of the worker (measured), and Celery's
# default shows none either.
_EACH_TASK = "taskmq.task"
_FORMAT = "%(asctime)s %(levelname)-8s [%(process)d] %(name)s: %(message)s"


class _OwnFile(logging.FileHandler):
    """A file that only its owner reads, where it is new: tracebacks may hold what nobody else should see."""

    def _open(self) -> Any:
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def set_up_logging(level: str | None, logfile: str | None) -> None:
    """Send the log to `logfile`, else to stderr; `level` None is INFO without the lines of single tasks.

    A root logger that has handlers already is the project's own: it keeps them, only the level of our own
    loggers is set. With a log file our handler is added all the same, since it was asked for.
    """
    root = logging.getLogger()
    number = getattr(logging, "CRITICAL" if level == "FATAL" else level or "INFO")
    logging.getLogger("taskmq").setLevel(number)
    logging.getLogger(_EACH_TASK).setLevel(logging.WARNING if level is None else logging.NOTSET)
    if root.handlers and not logfile:
        return
    handler: logging.Handler
    if logfile:
        try:
            handler = _OwnFile(logfile, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--logfile {logfile}: {error.strerror}") from None
    else:
        handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SafeFormatter(_FORMAT))
    root.addHandler(handler)
    root.setLevel(number)
