"""docs/cli.md covers what there is, and every command that reads prints JSON."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from taskmq.cli.main import LATER, cli
from tests.unit.cli.test_main import COMMANDS, ROOT

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "cli.md").read_text()

# Families and commands that only act; everything else answers a question.
FAMILIES = {("dlq",), ("queue",), ("config",)}
ACTING = {("worker",), ("purge",), ("dlq", "drop"), ("queue", "pause"), ("queue", "resume")}


def command(path: tuple[str, ...]) -> click.Command:
    found: click.Command = cli
    for name in path:
        assert isinstance(found, click.Group)
        inner = found.get_command(ROOT, name)
        assert inner is not None
        found = inner
    return found


def section(name: str) -> str:
    """The text of a command's heading."""
    match = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match, f"docs/cli.md has no section {name!r}"
    return match[1]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_is_documented(path: tuple[str, ...]) -> None:
    assert " ".join(path) in section(path[0]) or len(path) == 1


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_of_a_command_is_documented(path: tuple[str, ...]) -> None:
    text = section(path[0])
    everywhere = {"--json", "--help", "--app", "--broker", "--as-celery", "--workdir"}

    for param in command(path).params:
        if isinstance(param, click.Option):
            names = {*param.opts, *param.secondary_opts}
            if not names & everywhere and not param.hidden:
                assert any(n in text for n in names), f"{' '.join(path)} {names}"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_that_reads_has_json(path: tuple[str, ...]) -> None:
    has_json = any("--json" in param.opts for param in command(path).params)

    assert has_json is (path not in FAMILIES | ACTING)


@pytest.mark.parametrize("name", LATER)
def test_commands_that_do_not_exist_are_named_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize(
    "line",
    [
        "taskmq call myapp.tasks.send_email --args '[\"a@b.com\"]' --priority 5",
        "taskmq dlq replay --all --queue email --priority 0",
        "taskmq status --by-priority",
    ],
)
def test_the_commands_of_the_seed_stand_on_the_page_as_it_writes_them(line: str) -> None:
    assert f"\n{line}\n" in PAGE
