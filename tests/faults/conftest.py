"""What tests of real workers share, whatever goes wrong in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.worker.conftest import Site
from tests.support.processes import processes


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A project of its own, its workers and its file; all of them gone at the end."""
    with processes(tmp_path) as started:
        site = Site(tmp_path, started)
        yield site
        site.close()
