"""The example projects do what their page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import ROOT, CommandLine, environment
from tests.support.processes import Processes, processes
from tests.support.waiting import wait_until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the examples, so that their databases are not made in the checkout."""
    return Path(shutil.copytree(ROOT / "examples", tmp_path / "examples"))


def worker(started: Processes, folder: Path, *arguments: str) -> None:
    path = os.pathsep.join([str(folder), str(ROOT)])
    started.taskmq(*arguments, env={"PYTHONPATH": path}, name="worker")


def test_the_shop_serves_the_urgent_report_and_buries_the_declined_card(folder: Path) -> None:
    taskmq = CommandLine(folder)
    with processes(folder) as started:
        worker(started, folder, "-A", "shop", "worker", "-c", "2")
        said = subprocess.run(
            [sys.executable, "shop.py"],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        ).stdout
        urgent = re.search(r"why (\S+)", said)
        assert urgent
        value = taskmq("-A", "shop", "result", urgent[1], "--timeout", "40")

        def declined() -> str:
            return taskmq("-A", "shop", "dlq", "list")

        wait_until(lambda: "CardDeclined: 5.00" in declined(), timeout=30, every=0.2)

    assert '"month": "this one at once"' in value


def test_the_bookshop_runs_unmodified_under_the_alias(folder: Path) -> None:
    taskmq = CommandLine(folder)
    with processes(folder) as started:
        flags = ["--as-celery", "-A", "bookshop"]
        worker(started, folder, *flags, "worker", "-c", "2", "-Q", "celery,stock")
        task_id = taskmq(*flags, "call", "bookshop.tasks.restock", "--args", '["978-0"]').strip()

        assert taskmq(*flags, "result", task_id, "--timeout", "40") == '"978-0"\n'
