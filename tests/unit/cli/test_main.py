"""The frame: the catalogue, the order of options, and how errors become exit codes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from taskmq import __version__
from taskmq.app import App
from taskmq.cli.main import CATALOGUE, LATER, cli
from taskmq.errors import TransportCorrupt, TransportUnavailable
from tests.unit.cli.conftest import Run

ROOT = click.Context(cli, info_name="taskmq")


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every command, families included."""
    for name in group.list_commands(ROOT):
        command = group.get_command(ROOT, name)
        assert command is not None
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = list(commands())


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version").out.strip() == f"taskmq {__version__}"


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_catalogues_line_is_the_commands_own(name: str) -> None:
    module, _, attribute = CATALOGUE[name].place.partition(":")
    command = getattr(import_module(module), attribute)

    assert command.help.split("\n")[0].rstrip(".") == CATALOGUE[name].help.rstrip(".")


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_and_where_it_looks(run: Run, path: tuple[str, ...]) -> None:
    answer = run(*path, "--help")

    assert answer.code == 0
    assert "-A, --app" in answer.out
    assert "Application:" in answer.out


def test_the_list_of_commands_imports_none_of_them(run: Run) -> None:
    for entry in CATALOGUE.values():
        sys.modules.pop(entry.place.partition(":")[0], None)

    answer = run("--help")

    loaded = [e.place for e in CATALOGUE.values() if e.place.partition(":")[0] in sys.modules]
    assert (answer.code, loaded) == (0, [])
    assert all(name in answer.out for name in CATALOGUE)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-A", "cli_shop", "list", "--json"],
        ["list", "-A", "cli_shop", "--json"],
        ["list", "--json", "--app=cli_shop"],
        ["-A", "elsewhere", "list", "--json", "-A", "cli_shop"],
    ],
)
def test_the_application_may_stand_before_or_after_the_command(
    run: Run, shop: App, arguments: list[str]
) -> None:
    answer = run(*arguments)

    assert [task["task"] for task in answer.json] == ["shop.report", "shop.send_email"]


def test_the_application_may_stand_anywhere_in_a_family(run: Run, shop: App) -> None:
    for arguments in (
        ["-A", "cli_shop", "dlq", "list"],
        ["dlq", "-A", "cli_shop", "list"],
        ["dlq", "list", "-A", "cli_shop"],
    ):
        assert run(*arguments).lines == ["no dead letters"]


def test_the_application_can_come_from_the_environment(
    run: Run, shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKMQ_APP", "cli_shop")

    assert run("dlq", "list").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["-A", "cli_shop", "dlq", "list"],
        ["dlq", "-A", "cli_shop", "list"],
        ["dlq", "list", "-A", "cli_shop"],
    ],
)
def test_the_environment_never_wins_over_an_application_that_is_written_out(
    run: Run, shop: App, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("TASKMQ_APP", "no_such_project")

    assert run(*arguments).lines == ["no dead letters"]


@pytest.mark.parametrize(("option", "what"), [("-A", "MODULE"), ("-b", "URL")])
def test_an_empty_application_or_broker_is_refused_and_not_passed_over(
    run: Run, shop: App, monkeypatch: pytest.MonkeyPatch, option: str, what: str
) -> None:
    monkeypatch.setenv("TASKMQ_APP", "cli_shop")

    answer = run(option, "", "status")

    assert answer.code == 2
    assert f"a {what} is expected, got ''" in answer.err


@pytest.mark.parametrize(
    ("arguments", "likely"),
    [(["statsu"], "'status'"), (["dlq", "lst"], "'list'"), (["queue", "puase"], "'pause'")],
)
def test_an_unknown_command_gets_the_likely_one(
    run: Run, arguments: list[str], likely: str
) -> None:
    answer = run(*arguments)

    assert answer.code == 2
    assert f"Did you mean {likely}?" in answer.err


@pytest.mark.parametrize("name", LATER)
def test_celerys_other_commands_are_answered_with_what_to_do(run: Run, name: str) -> None:
    answer = run(name, "--anything")

    assert answer.code == 2
    assert LATER[name] in answer.err


def test_a_command_that_needs_an_application_says_so(run: Run) -> None:
    answer = run("worker")

    assert answer.code == 2
    assert answer.err.strip() == "Error: no application: give -A/--app MODULE, or set TASKMQ_APP"


def test_a_module_that_does_not_exist_is_wrong_use(run: Run) -> None:
    answer = run("-A", "no_such_project", "status")

    assert answer.code == 2
    assert "no_such_project" in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("error", "code"),
    [(TransportUnavailable("the store is locked by pid 7"), 1), (TransportCorrupt("page 5"), 3)],
)
def test_errors_of_the_store_are_one_line_and_an_exit_code(
    taskmq: Run, shop: App, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(shop.transport.operators, "peek", fail)

    answer = taskmq("peek")

    assert (answer.code, answer.err.strip()) == (code, f"Error: {error}")


def test_an_interrupt_is_exit_code_130(
    taskmq: Run, shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shop.transport, "wait", interrupt)

    answer = taskmq("events")

    assert answer.code == 130
    assert "Traceback" not in answer.err


def test_workdir_is_changed_to_before_the_application_is_loaded(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cli_elsewhere.py").write_text("from taskmq import App\napp = App()\n")
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.setattr(sys, "path", sys.path[:])

    answer = run("-A", "cli_elsewhere", "--workdir", str(tmp_path), "list")

    assert (answer.code, answer.lines) == (0, ["the application has no tasks"])
