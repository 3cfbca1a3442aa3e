"""`import celery` meaning TaskMQ: one set of modules under two names, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALL = "from taskmq.compat import install_as_celery; install_as_celery()\n"


def run(code: str, *, install: bool = True, cwd: Path | None = None, **env: str) -> str:
    """What a Python process prints that runs this code."""
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", (INSTALL if install else "") + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=cwd,
        env={**{k: v for k, v in os.environ.items() if k != "TASKMQ_AS_CELERY"}, **env},
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_modules_are_the_same_objects_under_both_names() -> None:
    printed = run(
        """
        import celery, celery.app.task, celery.exceptions, celery.utils.log, celery.canvas
        from celery import Celery, Task, current_app, shared_task, chain, group, chord, states
        import taskmq.compat as ours
        import taskmq.compat.app.task, taskmq.compat.utils.log
        print(celery is ours, celery.app is ours.app, celery.app.task is ours.app.task)
        print(Celery is ours.Celery, celery.utils.log is ours.utils.log)
        print(celery.__name__, celery.__spec__.name, celery.__package__)
        from celery.exceptions import Retry
        from taskmq.compat.exceptions import Retry as Own
        print(Retry is Own)
        """
    )

    assert printed.splitlines() == [
        "True True True",
        "True True",
        "taskmq.compat taskmq.compat taskmq.compat",
        "True",
    ]


def test_alias_wins_over_an_installed_celery_and_answers_its_version() -> None:
    if find_spec("celery") is None:
        pytest.skip("no Celery is installed beside TaskMQ here")
    printed = run(
        """
        import celery, importlib.metadata
        print(celery.__file__.endswith("compat/__init__.py"))
        print(importlib.metadata.version("celery") == celery.__version__)
        print(importlib.metadata.distribution("celery").metadata["Name"])
        print(importlib.metadata.version("kombu") != celery.__version__)
        """
    )

    assert printed.splitlines() == ["True", "True", "celery", "True"]


def test_installing_twice_changes_nothing() -> None:
    assert run("install_as_celery(); import sys; print(len(sys.meta_path))") == run(
        "import sys; print(len(sys.meta_path))"
    )


def test_missing_part_says_so_and_the_installed_celery_does_not_get_in() -> None:
    printed = run(
        """
        for name in ("task", "beat", "bootsteps", "worker.request", "nonsense"):
            try:
                __import__(f"celery.{name}")
            except ModuleNotFoundError as exc:
                print(name, exc.name, exc)
        import sys
        print([m for m in sys.modules if m.startswith("celery.") and "compat" not in repr(sys.modules[m])])
        try:
            from celery import bootsteps
        except ModuleNotFoundError as exc:
            print(exc)
        """
    ).splitlines()

    assert "celery.task is gone: Celery 5 removed it" in printed[0]
    assert "celery.beat is not there yet: let cron run" in printed[1]
    assert printed[6].startswith("celery.bootsteps is not there yet: ")
    assert [line.split()[0] for line in printed[:5]] == [
        "task",
        "beat",
        "bootsteps",
        "worker.request",
        "nonsense",
    ]
    assert "No module named 'celery.nonsense'" in printed[4]
    assert printed[5] == "[]"


def test_real_celery_that_was_imported_before_is_refused() -> None:
    if find_spec("celery") is None:
        pytest.skip("no Celery is installed beside TaskMQ here")
    printed = run(
        """
        import celery
        from taskmq.compat import install_as_celery
        try:
            install_as_celery()
        except Exception as exc:
            print(type(exc).__name__, "was imported before" in str(exc))
        """,
        install=False,
    )

    assert printed == "ImproperlyConfigured True"


def test_children_have_the_alias_too(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text(
        "import taskmq.compat\n"
        "def which(queue=None):\n"
        "    import celery\n"
        "    answer = celery.__name__\n"
        "    queue.put(answer)\n"
    )
    printed = run(
        """
        import multiprocessing
        from inner import which
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            queue = context.Queue()
            process = context.Process(target=which, args=(queue,))
            process.start()
            print(method, queue.get(timeout=30))
            process.join(timeout=30)
        """,
        cwd=tmp_path,
        PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}",
        PYTHONWARNINGS="ignore",
    )

    assert printed.splitlines() == ["fork taskmq.compat", "spawn taskmq.compat"]


def test_environment_variable_installs_it_where_taskmq_is_imported() -> None:
    printed = run(
        "import taskmq.compat, celery; print(celery.__name__)", install=False, TASKMQ_AS_CELERY="1"
    )

    assert printed == "taskmq.compat"


def test_tasks_and_errors_pickle_under_either_name(tmp_path: Path) -> None:
    printed = run(
        """
        import pickle
        from celery.exceptions import Retry
        from celery.result import AsyncResult
        from celery import Celery
        app = Celery("proj", broker="memory://")
        for value in (Retry("m", ValueError("x"), 3), AsyncResult("id")):
            back = pickle.loads(pickle.dumps(value))
            print(type(back) is type(value), type(back).__module__)
        """
    )

    assert printed.splitlines() == [
        "True taskmq.compat.exceptions",
        "True taskmq.compat._async_result",
    ]


def test_libraries_find_what_they_patch_and_import() -> None:
    run(
        """
        from celery.app.task import Task, Context
        from celery.app.base import Celery
        from celery.app import app_or_default
        from celery._state import get_current_task, get_current_app, set_default_app, _task_stack
        from celery.local import Proxy, PromiseProxy
        from celery.result import AsyncResult, EagerResult, GroupResult, allow_join_result
        from celery.utils import uuid, gen_unique_id
        from celery.utils.log import get_task_logger, get_logger
        from celery.utils.time import get_exponential_backoff_interval, maybe_timedelta
        from celery.utils.dispatch import Signal
        from celery.utils.nodenames import gethostname
        from celery.utils.imports import symbol_by_name, instantiate
        from celery.utils.functional import maybe_list
        from celery.utils.threads import LocalStack
        from celery.canvas import Signature, chain, group, chord, maybe_signature
        from celery.states import READY_STATES
        from celery.app.control import Control, Inspect
        from celery.signals import task_prerun, before_task_publish
        """
    )
