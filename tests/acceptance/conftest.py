"""Celery projects as files, run as their users would: under the alias, or with the import swapped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Processes, processes

PROJECTS = Path(__file__).parent / "projects"
WAYS = ("as celery", "import swapped")

# What a project's own script starts with where it cannot be edited: the alias, then the script.
_ALIASED = (
    "import runpy, sys\n"
    "from taskmq.compat import install_as_celery\n"
    "install_as_celery()\n"
    "sys.argv = sys.argv[1:]\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')\n"
)


class Project:
    """A copy of one project in a directory of its own, and the processes started in it."""

    def __init__(self, name: str, way: str, home: Path, started: Processes) -> None:
        self.home = home
        self.way = way
        self.started = started
        self.database = home / "messages.db"
        self.env = {
            "TASKMQ_BROKER_URL": f"sqlite:///{self.database}",
            "NOTES_DIR": str(home),
            "LEDGER": str(home / "ledger.txt"),
            "TASKMQ_AS_CELERY": "",
        }
        shutil.copytree(PROJECTS / name, home, dirs_exist_ok=True)
        if way == "import swapped":
            for path in home.rglob("*.py"):
                path.write_text(path.read_text().replace("from celery", "from taskmq.compat"))

    def worker(self, app: str, *options: str, name: str = "worker") -> Any:
        """`taskmq [--as-celery] -A app worker …`."""
        alias = ["--as-celery"] if self.way == "as celery" else []
        return self.started.taskmq(*alias, "-A", app, "worker", *options, env=self.env, name=name)

    def script(self, *arguments: str, name: str = "client") -> Any:
        """`python client.py …`, in the way of this project."""
        if self.way == "as celery":
            return self.started.python("-c", _ALIASED, *arguments, env=self.env, name=name)
        return self.started.python(*arguments, env=self.env, name=name)

    def told(self, process: Any, timeout: float) -> Any:
        """The JSON that a script printed last; fails with its output when it did not end well."""
        code = process.wait(timeout=timeout)
        output = self.started.log(process)
        assert code == 0, output
        return json.loads(output.splitlines()[-1])


MakeProject = Callable[[str], Project]


@pytest.fixture(params=WAYS, ids=lambda way: way.replace(" ", "-"))
def make_project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeProject]:
    """Makes a project in this run's way; its processes are gone at the end."""
    with processes(tmp_path) as started:

        def make(name: str) -> Project:
            return Project(name, request.param, tmp_path, started)

        yield make


@pytest.fixture
def make_unedited(tmp_path: Path) -> Iterator[MakeProject]:
    """Makes a project that runs unedited, under the alias."""
    with processes(tmp_path) as started:

        def make(name: str) -> Project:
            return Project(name, "as celery", tmp_path, started)

        yield make
