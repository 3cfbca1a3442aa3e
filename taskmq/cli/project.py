"""Loading the application of `-A`; where its own module fails, that part of the traceback and no other."""

from __future__ import annotations

import importlib
import os
import traceback
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING

import click

import taskmq
from taskmq.errors import TaskMQError

if TYPE_CHECKING:
    from taskmq.app import App

# What stands between the command and the project's first line.
_MACHINERY = tuple(
    f"{Path(str(module.__file__)).parent}{os.sep}" for module in (taskmq, click, importlib)
)
_FROZEN = "<frozen importlib"
_SWAP = (
    "; the project imports celery, which is not installed here. Start with --as-celery, which lets it mean "
    "TaskMQ, or write taskmq.compat where it says celery, as in `from taskmq.compat import Celery`"
)


class BrokenProject(TaskMQError):
    """The project's own code raised something while it was loaded.

    `trace` is the traceback from the project's first line on, without what the message says already.
    """

    def __init__(self, message: str, trace: str) -> None:
        super().__init__(message)
        self.trace = trace


def load(spec: str, *, as_celery: bool) -> App:
    """The App of `-A spec`. Raises `BrokenProject`; our own errors as they are, they explain themselves."""
    from taskmq.loading import load_app

    try:
        return load_app(spec)
    except TaskMQError:
        raise
    except Exception as error:
        raise _broken(spec, error, as_celery) from error


def _broken(spec: str, error: Exception, as_celery: bool) -> BrokenProject:
    told = traceback.TracebackException.from_exception(error)
    _trim(told)
    # A SyntaxError shows its place, indented, before it says what is wrong.
    said = "".join(dropwhile(lambda line: line.startswith("  "), told.format_exception_only()))
    hint = ""
    if isinstance(error, ModuleNotFoundError) and error.name == "celery" and not as_celery:
        hint = _SWAP
    trace = "".join(told.format()).removesuffix(said)
    return BrokenProject(f"-A {spec} cannot be loaded: {said.rstrip()}{hint}", trace)


def _trim(told: traceback.TracebackException) -> None:
    """Leave the frames from the project's first one on, also of the errors this one came from."""
    own = list(dropwhile(_is_machinery, told.stack))
    # Without a frame of the project the fault is ours, unless its file could not even be compiled: of all
    # errors those of syntax alone have a line of their own.
    if own or hasattr(told, "lineno"):
        told.stack = traceback.StackSummary.from_list(
            [frame for frame in own if not frame.filename.startswith(_FROZEN)]
        )
    for other in (told.__cause__, told.__context__):
        if other is not None:
            _trim(other)


def _is_machinery(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith((*_MACHINERY, _FROZEN))
