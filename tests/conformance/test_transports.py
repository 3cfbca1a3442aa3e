"""The exported conformance suite over the transports that exist."""

from __future__ import annotations

from taskmq.testing.conformance import *  # noqa: F403 - the suite is what this module is made of
