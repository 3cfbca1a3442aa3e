"""A result that a stranger wrote makes nobody call anything (CVE-2021-23727, reliability §6)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import taskmq.testing
from taskmq import App
from taskmq.errors import RemoteError
from taskmq.message import ResultRecord
from taskmq.states import State

TRIPLES: list[tuple[Any, Any]] = [
    ("os", "system"),
    ("os", "popen"),
    ("posix", "system"),
    ("subprocess", "Popen"),
    ("subprocess", "Popen.__init__"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "open"),
    ("builtins", "type"),
    ("builtins", "SystemExit"),
    ("builtins", "BaseException"),
    ("builtins", "Exception.__subclasses__"),
    ("builtins", "Exception.__class__.__call__"),
    ("builtins", "<lambda>"),
    ("taskmq.cli.main", "os.system"),
    ("taskmq.result", "json.JSONDecodeError"),
    ("taskmq", "App"),
    ("taskmq.errors", "sys.exit"),
    ("taskmq.errors.", "ConfigError"),
    ("taskmq..errors", "ConfigError"),
    ("antigravity", "Exception"),
    ("taskmq.nowhere", "Exception"),
    ("__main__", "os.system"),
    (["os"], "system"),
    ({"a": 1}, "system"),
    (None, "system"),
    ("os", "system\x00"),
    ("os\x1b[31m", "system"),
]


@pytest.fixture
def app() -> Iterator[App]:
    made = taskmq.testing.app()
    yield made
    made.close()


@pytest.mark.parametrize(("module", "name"), TRIPLES, ids=lambda value: ascii(value)[:40])
def test_get_raises_a_remote_error_and_calls_and_imports_nothing(
    app: App, module: Any, name: str, tmp_path: Any
) -> None:
    canary = tmp_path / "canary"
    body = json.dumps(
        {"exc_type": name, "exc_module": module, "exc_message": [f"touch {canary}"]}
    ).encode()
    app.results.put([ResultRecord(task_id="hostile", state=State.FAILED, body=body)])
    before = set(sys.modules)

    with pytest.raises(RemoteError) as raised:
        app.result("hostile").get(timeout=0)

    assert type(raised.value) is RemoteError
    assert not canary.exists()
    assert set(sys.modules) == before


def test_a_class_of_the_app_s_own_tasks_is_rebuilt(app: App) -> None:
    app.task(name="jobs.work")(_work)
    body = json.dumps({"exc_type": "OwnError", "exc_module": __name__, "exc_message": ["x"]})
    app.results.put([ResultRecord(task_id="own", state=State.FAILED, body=body.encode())])

    with pytest.raises(OwnError):
        app.result("own").get(timeout=0)


class OwnError(Exception):
    pass


def _work() -> None:
    raise OwnError
