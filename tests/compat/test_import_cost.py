"""What `from taskmq.compat import Celery` loads, and what it leaves to those who use it."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNTIL_USED = {
    *("kombu", "amqp", "vine", "billiard", "celery", "ssl", "importlib.metadata", "email"),
    *("sqlite3", "asyncio", "multiprocessing", "click", "zoneinfo", "logging.config"),
}
DECLARED = """
from taskmq.compat import Celery
app = Celery(broker="memory://")
@app.task
def add(x, y): return x + y
add.name
"""


@pytest.mark.parametrize("program", ["from taskmq.compat import Celery", DECLARED])
def test_importing_and_declaring_loads_neither_kombu_nor_a_transport(program: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    loaded = set(run.stdout.split())

    assert "taskmq.compat.app.base" in loaded
    assert not loaded & UNTIL_USED


def test_the_error_of_a_publish_is_kombus_wherever_it_is_found() -> None:
    import kombu.exceptions

    from taskmq.compat import Celery, exceptions

    task = Celery("costs", broker="memory://", set_as_current=False).task(name="a")(lambda: None)

    assert exceptions.OperationalError is kombu.exceptions.OperationalError
    assert task.OperationalError is kombu.exceptions.OperationalError
