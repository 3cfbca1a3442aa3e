"""The project of the message tests with one real worker over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.messages.conftest import Site
from tests.support.processes import processes


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with processes(tmp_path) as started:
        site = Site(tmp_path, started, 1024 * 1024)
        yield site
        site.app.close()
