"""Every test here runs over every transport that exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskmq.testing.conformance import MakeTransport
from tests.conformance.makers import MAKERS


@pytest.fixture(params=list(MAKERS))
def make_transport(request: pytest.FixtureRequest, tmp_path: Path) -> MakeTransport:
    return MAKERS[request.param](tmp_path)
