"""How each transport that exists is made for the tests here: new, empty and not open yet."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from taskmq.testing.conformance import MakeTransport
from taskmq.transports.base import Settings
from taskmq.transports.memory import MemoryTransport
from taskmq.transports.sqlite import SQLiteTransport


def memory(_directory: Path) -> MakeTransport:
    def make(clock, random, **settings):
        return MemoryTransport(Settings(**settings), clock=clock, random=random)

    return make


def sqlite(directory: Path) -> MakeTransport:
    numbers = count(1)

    def make(clock, random, **settings):
        path = directory / f"conformance-{next(numbers)}.db"
        return SQLiteTransport(path, Settings(**settings), clock=clock, random=random)

    return make


MAKERS: dict[str, Callable[[Path], MakeTransport]] = {"memory": memory, "sqlite": sqlite}
