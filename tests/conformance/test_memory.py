"""The conformance suite over the memory transport."""

from __future__ import annotations

import pytest

from taskmq.testing.conformance import *  # noqa: F403 - the suite is what this module is made of
from taskmq.testing.conformance import MakeTransport
from taskmq.transports.base import Settings
from taskmq.transports.memory import MemoryTransport


@pytest.fixture
def make_transport() -> MakeTransport:
    def make(clock, random, **settings):
        return MemoryTransport(Settings(**settings), clock=clock, random=random)

    return make
