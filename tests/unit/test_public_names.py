"""What `import taskmq` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import taskmq

DOCUMENTED = {
    "AckMode",
    "App",
    "Config",
    "Context",
    "Priority",
    "QueueConfig",
    "Result",
    "RetryPolicy",
    "State",
    "Task",
    "__version__",
    "current_context",
}
# Not needed to declare and to submit nothing, or optional.
HEAVY = {
    *("kombu", "amqp", "click", "celery", "msgpack", "yaml", "pickle"),
    *("sqlite3", "asyncio", "multiprocessing", "concurrent.futures", "subprocess", "socket", "ssl"),
    *("argparse", "logging.config", "zoneinfo", "email", "importlib.metadata", "difflib"),
    # A value of theirs can only be sent by who has loaded them.
    *("uuid", "decimal"),
}
# Each costs more than a millisecond, for classes that only a message or an open transport needs.
UNTIL_USED = {
    *("taskmq.codec.failures", "taskmq.transports.base"),
    *("taskmq.policy.following", "taskmq.policy.steps"),
    *("taskmq.context", "taskmq.signature", "taskmq.workflow", "taskmq.waiting", "taskmq.loading"),
}
# What encodes a call; a declaration asks its codec whether workers would read it.
OF_A_MESSAGE = {"taskmq.codec.bodies", "taskmq.codec.values", "taskmq.submitting", "json", "base64"}


def loaded_by(program: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return set(run.stdout.split())


def test_the_public_names_are_the_documented_ones() -> None:
    assert set(taskmq.__all__) == DOCUMENTED
    assert set(dir(taskmq)) == DOCUMENTED


@pytest.mark.parametrize("name", sorted(DOCUMENTED - {"__version__"}))
def test_a_public_name_is_what_its_module_defines(name: str) -> None:
    value = getattr(taskmq, name)

    assert value.__module__.startswith("taskmq.")
    assert getattr(import_module(value.__module__), name) is value
    assert value.__doc__


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Celery'"):
        taskmq.Celery  # noqa: B018


def test_the_package_is_typed() -> None:
    assert (Path(taskmq.__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("module", ["workflow", "errors", "loading"])
def test_what_else_is_public_says_what_it_exports(module: str) -> None:
    home = import_module(f"taskmq.{module}")

    for name in getattr(home, "__all__", ()):
        assert getattr(home, name).__doc__


def test_importing_the_package_loads_only_itself() -> None:
    loaded = loaded_by("import taskmq")

    assert not loaded & HEAVY
    assert {m for m in loaded if m.startswith("taskmq")} == {"taskmq", "taskmq._version"}


@pytest.mark.parametrize("program", ["from taskmq import App", "from taskmq import App; App()"])
def test_an_app_alone_loads_neither_codec_nor_seam(program: str) -> None:
    loaded = loaded_by(program)

    assert "taskmq.app" in loaded
    assert not loaded & (HEAVY | UNTIL_USED | OF_A_MESSAGE)


def test_declaring_tasks_loads_nothing_heavy() -> None:
    loaded = loaded_by(
        "from taskmq import App, Config, Priority, QueueConfig\n"
        "app = App(Config(queues={'q': QueueConfig(weight=2)}))\n"
        "@app.task(queue='q', priority=Priority.HIGH)\n"
        "def work(): ..."
    )

    assert not loaded & HEAVY
    assert not loaded & UNTIL_USED


def test_importing_does_not_reach_up_to_workers_or_the_shim() -> None:
    loaded = loaded_by("import taskmq.app, taskmq.workflow, taskmq.loading")
    above = ("taskmq.worker", "taskmq.pools", "taskmq.cli", "taskmq.compat", "taskmq.testing")

    assert not [m for m in loaded if m.startswith(above)]
