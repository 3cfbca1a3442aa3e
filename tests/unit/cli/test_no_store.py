"""Before the first submit: looking says that there is no store yet, and makes none."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from taskmq.app import App
from taskmq.config import QueueConfig
from tests.unit.cli.conftest import Run


@pytest.fixture
def fresh(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line on an application nobody has used yet."""
    app = App(
        queues={"mail": QueueConfig(weight=2)}, base_dir=tmp_path, result_url="sqlite:///r.db"
    )

    @app.task(name="fresh.thumb", queue="thumbs")
    def thumb() -> None: ...

    module = ModuleType("cli_fresh")
    module.app = app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cli_fresh", module)
    return lambda *arguments: run("-A", "cli_fresh", *arguments)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("status", 0),
        ("status --by-priority --json", 0),
        ("peek", 0),
        ("queue list", 0),
        ("queue resume mail", 0),
        ("why some-id", 1),
        ("result some-id", 1),
        ("result some-id --timeout 40", 1),
        ("dlq list", 0),
        ("dlq show 1", 1),
        ("dlq replay 1", 1),
        ("dlq replay --all", 0),
        ("dlq drop --all --yes", 0),
        ("purge --force", 0),
        ("events --no-follow", 0),
        ("events", 1),
    ],
)
def test_looking_says_that_there_is_no_store_yet_and_makes_none(
    fresh: Run, tmp_path: Path, command: str, code: int
) -> None:
    answer = fresh(*command.split())

    assert answer.code == code, answer
    assert answer.err.startswith(f"there is no store yet: {tmp_path}/taskmq.db ")
    assert answer.err.count("no store yet") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["status", "peek", "dlq list", "queue list"])
def test_programs_get_their_json_all_the_same(fresh: Run, command: str) -> None:
    assert fresh(*command.split(), "--json").json is not None


def test_doctor_and_settings_make_no_store_either(fresh: Run, tmp_path: Path) -> None:
    assert [fresh(name).code for name in ("doctor", "config", "list")] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_status_and_queue_list_know_the_same_queues(fresh: Run) -> None:
    expected = ["default", "mail", "thumbs"]

    assert [row["queue"] for row in fresh("queue", "list", "--json").json] == expected
    assert [row["queue"] for row in fresh("status", "--json").json["queues"]] == expected
    assert all(
        f"{name}: nothing waits" in fresh("status", "--by-priority").out for name in expected
    )


@pytest.mark.parametrize(
    "command", ["call fresh.thumb", "queue pause mail", "revoke some-id"], ids=str.split
)
def test_what_stores_something_makes_the_store_and_says_nothing_of_it(
    fresh: Run, tmp_path: Path, command: str
) -> None:
    answer = fresh(*command.split())

    assert (answer.code, answer.err) == (0, "")
    assert (tmp_path / "taskmq.db").exists()


def test_a_call_needs_no_application_to_make_the_store_it_names(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"

    answer = run("-b", url, "call", "elsewhere.sync", "--queue", "new")

    assert (answer.code, answer.err) == (0, "")
    assert (tmp_path / "new.db").exists()


def test_a_store_that_is_there_is_looked_at_without_a_note(fresh: Run) -> None:
    task_id = fresh("call", "fresh.thumb").out.strip()

    answer = fresh("peek")

    assert task_id in answer.out
    assert answer.err == ""


@pytest.mark.parametrize("command", ["call fresh.thumb", "status", "why x", "queue pause mail"])
def test_a_store_in_memory_is_refused_where_another_process_would_have_to_see_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    module = ModuleType("cli_alone")
    module.app = App(broker_url="memory://", base_dir=tmp_path)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cli_alone", module)

    answer = run("-A", "cli_alone", *command.split())

    assert (answer.code, answer.out) == (2, "")
    assert "memory:// keeps messages inside one process" in answer.err
    assert "-b sqlite:///taskmq.db" in answer.err


def test_a_worker_is_not_sent_into_its_own_memory(run: Run) -> None:
    answer = run("-A", "no_such_project", "-b", "memory://", "worker")

    assert answer.code == 2
    assert "memory:// keeps messages inside one process" in answer.err
