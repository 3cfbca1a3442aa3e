"""`-A` names a project that cannot be loaded: what its author is shown, and what he can do."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import taskmq.loading
from tests.unit.cli.conftest import Run

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules that can be imported; they are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write_module(name: str, source: str) -> Path:
        file = tmp_path / f"{name}.py"
        file.write_text(source)
        importlib.invalidate_caches()
        return file

    yield write_module
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_error_of_the_project_shows_its_own_frames_and_is_told_once(
    run: Run, write: Write
) -> None:
    write("cli_settings", "def read():\n    raise RuntimeError('the host is missing')\n")
    write("cli_broken", "import cli_settings\ncli_settings.read()\n")

    answer = run("-A", "cli_broken", "list")

    assert answer.code == 1
    files = [line.split('"')[1] for line in answer.err.splitlines() if line.startswith("  File")]
    assert [Path(file).name for file in files] == ["cli_broken.py", "cli_settings.py"]
    assert answer.err.count("the host is missing") == 2  # the line of code, and what is wrong
    assert answer.err.splitlines()[-1] == (
        "Error: -A cli_broken cannot be loaded: RuntimeError: the host is missing"
    )


def test_a_fault_of_our_own_keeps_its_frames(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spec: str) -> None:
        raise KeyError(spec)

    fail.__code__ = fail.__code__.replace(co_filename=str(Path(taskmq.__file__).with_name("x.py")))
    monkeypatch.setattr(taskmq.loading, "load_app", fail)

    assert "x.py" in run("-A", "cli_ours", "list").err


def test_an_import_on_the_way_shows_none_of_the_import_system(run: Run, write: Write) -> None:
    write("cli_inner", "1 / 0\n")
    write("cli_outer", "import cli_inner\n")

    answer = run("-A", "cli_outer", "list")

    assert "importlib" not in answer.err
    assert answer.err.count("  File") == 2


def test_a_syntax_error_shows_its_place(run: Run, write: Write) -> None:
    file = write("cli_syntax", "x = 1\ndef f(:\n")

    answer = run("-A", "cli_syntax", "list")

    assert f'File "{file}", line 2' in answer.err
    assert answer.err.count("SyntaxError") == 1


def test_what_an_error_came_from_is_trimmed_alike(run: Run, write: Write) -> None:
    write(
        "cli_chained",
        "try:\n    import cli_is_not_there\nexcept ImportError as e:\n    raise ValueError('no') from e\n",
    )

    answer = run("-A", "cli_chained", "list")

    assert "No module named 'cli_is_not_there'" in answer.err
    assert "direct cause" in answer.err
    assert "importlib" not in answer.err


@pytest.fixture
def no_celery(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing answers to `import celery`."""

    class Nobody:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "celery":
                raise ModuleNotFoundError("No module named 'celery'", name="celery")

    for name in [n for n in sys.modules if n == "celery" or n.startswith("celery.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Nobody(), *sys.meta_path])


@pytest.mark.parametrize(
    "source",
    [
        "from celery import Celery\napp = Celery('proj')\n",
        "from taskmq.compat import Celery\nfrom celery.utils.log import get_task_logger\n",
    ],
    ids=["unchanged", "half-swapped"],
)
def test_a_project_that_imports_celery_without_it_is_told_both_ways_out(
    run: Run, write: Write, no_celery: None, source: str
) -> None:
    write("cli_celery", source)

    answer = run("-A", "cli_celery", "worker")

    assert answer.code == 1
    assert "No module named 'celery'" in answer.err
    assert "--as-celery" in answer.err
    assert "from taskmq.compat import Celery" in answer.err


def test_another_missing_import_is_not_explained_with_celery(run: Run, write: Write) -> None:
    write("cli_other", "import cli_is_not_there\n")

    assert "--as-celery" not in run("-A", "cli_other", "list").err


def test_doctor_reports_a_project_that_cannot_be_loaded(run: Run, write: Write) -> None:
    write("cli_doctor", "1 / 0\n")

    answer = run("-A", "cli_doctor", "doctor")

    assert answer.code == 1
    assert "fail  application  -A cli_doctor cannot be loaded: ZeroDivisionError" in answer.out


@pytest.mark.parametrize(
    "source",
    [
        "from taskmq import App, Config\napp = App(Config(broker_url='redis://:hunter2@box/0'))\n",
        "from taskmq.compat import Celery\napp = Celery('proj', broker='pyamqp://guest:hunter2@box//')\n",
    ],
    ids=["native", "celery"],
)
def test_a_broker_that_is_not_there_yet_is_told_with_the_way_out(
    run: Run, write: Write, source: str
) -> None:
    write("cli_broker", source)

    answer = run("-A", "cli_broker", "status")

    assert answer.code == 2
    assert "taskmq -b sqlite:///taskmq.db" in answer.err
    assert "TASKMQ_BROKER_URL=sqlite:///taskmq.db" in answer.err
    assert "hunter2" not in answer.err


@pytest.mark.parametrize("place", ["option", "variable"])
def test_the_way_out_works_without_a_change_to_the_project(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    write(
        "cli_way_out",
        "from taskmq.compat import Celery\n"
        "app = Celery('proj', broker='pyamqp://guest@box//', backend='redis://box')\n"
        "@app.task\ndef add(x, y): return x + y\n",
    )
    url = f"sqlite:///{tmp_path}/instead.db"
    if place == "variable":
        monkeypatch.setenv("TASKMQ_BROKER_URL", url)
    where = ["-b", url] if place == "option" else []

    answer = run("-A", "cli_way_out", *where, "call", "cli_way_out.add", "--args", "[1, 2]")

    assert answer.code == 0, answer.err
    assert (tmp_path / "instead.db").exists()
