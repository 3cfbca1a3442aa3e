"""A project folder, and the command line run in it as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Processes, processes

ROOT = Path(__file__).resolve().parents[3]

SHOP = '''
"""A project with a task that works and one that fails until `fixed` exists."""
from pathlib import Path

from taskmq import App, Config, Priority, QueueConfig

app = App(Config(broker_url="sqlite:///shop.db", queues={"email": QueueConfig(weight=3)}))


@app.task(queue="email", priority=Priority.HIGH)
def send_email(to):
    return f"sent to {to}"


@app.task
def divide(by):
    if by == 0 and not Path("fixed").exists():
        raise ZeroDivisionError("not by nothing")
    return 42 // (by or 1)
'''


class CommandLine:
    """Runs `taskmq` in a folder, waits for its end, and gives what it printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "taskmq", *arguments],
            cwd=self.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=50,
        )
        assert done.returncode == code, (
            f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


def environment() -> dict[str, str]:
    """Ours without what would change the meaning of a command, and with the checkout importable."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TASKMQ_")}
    return {**kept, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with the project `shop`."""
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


@pytest.fixture
def taskmq(shop: Path) -> CommandLine:
    return CommandLine(shop)


@pytest.fixture
def started(shop: Path) -> Iterator[Processes]:
    """Processes that are gone at the end of the test."""
    with processes(shop) as own:
        yield own


Worker = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def worker(started: Processes, shop: Path) -> Worker:
    """Start `taskmq -A shop worker` with these flags."""

    def start(*flags: str) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(shop), str(ROOT)])
        return started.taskmq(
            "-A", "shop", "worker", *flags, env={"PYTHONPATH": path}, name="worker"
        )

    return start
