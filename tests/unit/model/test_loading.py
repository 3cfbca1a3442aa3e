"""`-A`: which App a person means, and what they are told when there is none."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from taskmq import App
from taskmq.errors import ConfigError
from taskmq.loading import load_app

Write = Callable[..., Path]

APP = "from taskmq import App\n{name} = App(broker_url='memory://', name='{label}')\n"


def app_source(name: str = "app", label: str = "") -> str:
    return APP.format(name=name, label=label or name)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules into the current directory; what was imported from there is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", os.getcwd())])
    before = set(sys.modules)

    def write_module(path: str, source: str = "") -> Path:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        importlib.invalidate_caches()
        return file

    yield write_module
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_with_an_app(write: Write) -> None:
    write("jobs_a.py", app_source())

    assert load_app("jobs_a").name == "app"


def test_celerys_usual_name_is_found(write: Write) -> None:
    write("jobs_b.py", app_source("celery"))

    assert load_app("jobs_b").name == "celery"


def test_any_name_is_found_when_it_is_the_only_one(write: Write) -> None:
    write("jobs_c.py", app_source("queue") + "again = queue\n")

    assert load_app("jobs_c").name == "queue"


def test_app_wins_over_others(write: Write) -> None:
    write("jobs_d.py", app_source("other") + app_source("celery") + app_source("app"))

    assert load_app("jobs_d").name == "app"


def test_the_attribute_can_be_named(write: Write) -> None:
    write("jobs_e.py", app_source("app") + app_source("other") + "class box: inner = other\n")

    assert load_app("jobs_e:other").name == "other"
    assert load_app("jobs_e.other").name == "other"
    assert load_app("jobs_e:box.inner").name == "other"


@pytest.mark.parametrize("module", ["celery", "tasks"])
def test_a_package_is_searched_in_its_usual_modules(write: Write, module: str) -> None:
    write(f"proj_{module}/__init__.py")
    write(f"proj_{module}/{module}.py", app_source())

    assert load_app(f"proj_{module}").name == "app"
    assert load_app(f"proj_{module}.{module}:app").name == "app"


def test_a_package_that_names_its_module_celery_is_not_confused(write: Write) -> None:
    write("proj_f/__init__.py", "from proj_f.celery import app as celery_app\n")
    write("proj_f/celery.py", app_source())

    assert load_app("proj_f").name == "app"


def test_whatever_has_the_door_is_an_app(write: Write) -> None:
    write(
        "jobs_g.py",
        app_source("_inner") + "class Facade:\n"
        "    def __taskmq_app__(self): return _inner\n"
        "app = Facade()\n",
    )

    assert load_app("jobs_g").name == "_inner"


def test_the_current_directory_is_searched_first_and_once(write: Write, tmp_path: Path) -> None:
    write("jobs_h.py", app_source())
    load_app("jobs_h")
    load_app("jobs_h")

    assert sys.path[0] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


def test_a_missing_module_is_named_with_where_it_was_looked_for(
    write: Write, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="no module 'nowhere_x'") as refused:
        load_app("nowhere_x")
    assert str(tmp_path) in str(refused.value)

    with pytest.raises(ConfigError, match=r"no module 'nowhere_x\.tasks'"):
        load_app("nowhere_x.tasks:app")


def test_a_missing_submodule_names_the_package_it_should_be_in(write: Write) -> None:
    file = write("proj_i/__init__.py", app_source())

    with pytest.raises(ConfigError, match=r"no module 'proj_i\.tusks'") as refused:
        load_app("proj_i.tusks")
    assert str(file) in str(refused.value)


def test_a_missing_import_inside_the_project_is_the_projects_error(write: Write) -> None:
    write("jobs_j.py", "import not_installed_here\n" + app_source())

    with pytest.raises(ModuleNotFoundError, match="not_installed_here"):
        load_app("jobs_j")


def test_an_error_inside_the_project_keeps_its_traceback(write: Write) -> None:
    file = write("jobs_k.py", "x = 1\n1 / 0\n")

    with pytest.raises(ZeroDivisionError) as raised:
        load_app("jobs_k")
    assert str(raised.traceback[-1].path) == str(file)
    assert raised.traceback[-1].lineno == 1  # counted from 0


def test_a_broken_submodule_of_a_searched_package_is_not_swallowed(write: Write) -> None:
    write("proj_l/__init__.py")
    write("proj_l/celery.py", "import not_installed_here\n")

    with pytest.raises(ModuleNotFoundError, match="not_installed_here"):
        load_app("proj_l")


def test_a_module_without_an_app_says_what_was_looked_for(write: Write) -> None:
    file = write("jobs_m.py", "app = 5\n")

    with pytest.raises(ConfigError, match="no App in module 'jobs_m'") as refused:
        load_app("jobs_m")
    assert str(file) in str(refused.value)
    assert "celery" in str(refused.value)


def test_several_apps_are_listed(write: Write) -> None:
    write("jobs_n.py", app_source("one") + app_source("two"))

    with pytest.raises(ConfigError, match=r"jobs_n:one, jobs_n:two"):
        load_app("jobs_n")


def test_a_missing_attribute_names_the_near_one(write: Write) -> None:
    write("jobs_o.py", app_source("worker_app"))

    with pytest.raises(ConfigError, match=r"no 'workerapp'.*Did you mean 'worker_app'"):
        load_app("jobs_o:workerapp")


def test_what_is_no_app_is_named_by_its_type(write: Write) -> None:
    write("jobs_p.py", "app = {}\n")

    with pytest.raises(ConfigError, match="no taskmq App but of type dict"):
        load_app("jobs_p:app")


@pytest.mark.parametrize("spec", ["fake_proj_q", "fake_proj_q:app"])
def test_a_real_celery_app_is_told_how_to_start(write: Write, spec: str) -> None:
    # The class as the installed distribution has it, without importing it.
    write(
        "fake_proj_q.py",
        "class Celery: pass\nCelery.__module__ = 'celery.app.base'\napp = Celery()\n",
    )

    with pytest.raises(ConfigError, match="--as-celery") as refused:
        load_app(spec)
    assert "from taskmq.compat import Celery" in str(refused.value)


@pytest.mark.parametrize("spec", ["", ":app", ".tasks", "proj/tasks.py"])
def test_a_spec_that_can_be_no_module_is_refused(write: Write, spec: str) -> None:
    with pytest.raises(ConfigError, match="-A"):
        load_app(spec)


def test_an_app_opens_its_own_door() -> None:
    app = App(broker_url="memory://")

    assert app.__taskmq_app__() is app
