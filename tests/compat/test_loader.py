"""Importing the modules that hold tasks."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from taskmq.compat import Celery, signals
from taskmq.compat.exceptions import ImproperlyConfigured

FILES = {
    "shop/__init__.py": "",
    "shop/tasks.py": "from taskmq.compat import shared_task\n@shared_task\ndef ship(): ...\n",
    "shop/jobs.py": "from taskmq.compat import shared_task\n@shared_task\ndef pack(): ...\n",
    "shop/apps.py": "class ShopConfig: ...\n",
    "blog/__init__.py": "",
    "broken/__init__.py": "",
    "broken/tasks.py": "import no_such_thing\n",
}


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Packages with and without tasks."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_nothing_is_imported_before_a_worker_or_a_command_opens_the_app(app: Celery) -> None:
    app.conf.imports = ["shop.jobs"]
    app.autodiscover_tasks(["shop", "blog"])

    assert "shop.tasks" not in sys.modules
    assert "shop.tasks.ship" not in app.tasks

    engine = app.__taskmq_app__()

    assert {"shop.tasks.ship", "shop.jobs.pack"} <= set(app.tasks)
    assert "shop.tasks.ship" in engine.registry
    assert app.loader.task_modules == {"shop.jobs", "shop.tasks"}


def test_packages_may_be_named_by_a_function_that_is_called_late(app: Celery) -> None:
    called: list[int] = []

    def packages() -> list[str]:
        called.append(1)
        return ["shop"]

    app.autodiscover_tasks(packages)
    before = list(called)
    app.__taskmq_app__()

    assert (before, called) == ([], [1])
    assert "shop.tasks.ship" in app.tasks


def test_module_of_another_name_and_the_packages_themselves(app: Celery) -> None:
    app.autodiscover_tasks(["shop"], related_name="jobs")
    app.autodiscover_tasks(["blog"], related_name=None)
    app.__taskmq_app__()

    assert "shop.jobs.pack" in app.tasks
    assert "blog" in sys.modules
    assert "shop.tasks" not in sys.modules


def test_force_imports_at_once(app: Celery) -> None:
    app.autodiscover_tasks(["shop"], force=True)

    assert "shop.tasks" in sys.modules


def test_class_in_a_package_stands_for_the_package_as_in_installed_apps(app: Celery) -> None:
    app.autodiscover_tasks(["shop.tasks_config.ShopConfig"])
    with pytest.raises(ModuleNotFoundError):
        app.__taskmq_app__()

    app.autodiscover_tasks(["blog.BlogConfig", "shop.ShopConfig"])
    app.__taskmq_app__()
    assert "shop.tasks.ship" in app.tasks


def test_error_inside_a_module_is_raised(app: Celery) -> None:
    app.autodiscover_tasks(["broken"])

    with pytest.raises(ModuleNotFoundError, match="no_such_thing"):
        app.__taskmq_app__()


def test_package_that_does_not_exist_is_an_error(app: Celery) -> None:
    app.autodiscover_tasks(["nowhere"])

    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        app.__taskmq_app__()


@pytest.mark.parametrize("packages", ["shop", [3]])
def test_packages_that_are_no_list_of_names_are_refused(app: Celery, packages: object) -> None:
    app.autodiscover_tasks(packages)  # type: ignore[arg-type]

    with pytest.raises(ImproperlyConfigured, match="autodiscover_tasks"):
        app.__taskmq_app__()


def test_no_packages_outside_django_is_said(app: Celery, caplog: pytest.LogCaptureFixture) -> None:
    app.autodiscover_tasks()

    with caplog.at_level(logging.WARNING):
        app.__taskmq_app__()

    assert "DJANGO_SETTINGS_MODULE is not set" in caplog.text


def test_no_packages_under_django_are_its_installed_apps(
    app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    django, apps = ModuleType("django"), ModuleType("django.apps")

    class Apps:
        ready = False

        def get_app_configs(self) -> list[object]:
            return [type("Config", (), {"name": name})() for name in ("shop", "blog")]

    apps.apps = Apps()  # type: ignore[attr-defined]
    django.setup = lambda: setattr(Apps, "ready", True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "django", django)
    monkeypatch.setitem(sys.modules, "django.apps", apps)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "settings")

    app.autodiscover_tasks()
    app.__taskmq_app__()

    assert Apps.ready
    assert "shop.tasks.ship" in app.tasks


def test_receiver_of_import_modules_is_called_and_its_error_raised(
    app: Celery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals.import_modules, "_receivers", [])

    def receiver(sender: object, **kwargs: object) -> None:
        raise OSError(str(sender is app))

    signals.import_modules.connect(receiver)

    with pytest.raises(OSError, match="True"):
        app.__taskmq_app__()


def test_task_module_that_opens_the_app_itself_does_not_turn_in_circles(
    app: Celery, tmp_path: Path
) -> None:
    (tmp_path / "circle.py").write_text(
        "from taskmq.compat import current_app\ncurrent_app.__taskmq_app__()\n"
    )
    app.set_current()
    app.conf.include = ["circle"]

    app.__taskmq_app__()

    assert "circle" in sys.modules
