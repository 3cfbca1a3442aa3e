"""The documents say what the code has: settings, names, links, decisions."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import taskmq
from taskmq.config import Config

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
TEXT = {page: page.read_text() for page in PAGES}


@pytest.mark.parametrize("name", [f.name for f in fields(Config)])
def test_every_setting_is_documented_with_its_own_row(name: str) -> None:
    assert f"| `{name}` |" in TEXT[ROOT / "docs" / "configuration.md"]


def test_no_setting_is_documented_that_does_not_exist() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", TEXT[ROOT / "docs" / "configuration.md"], re.MULTILINE)

    assert set(rows) == {f.name for f in fields(Config)}


@pytest.mark.parametrize("name", [n for n in taskmq.__all__ if not n.startswith("_")])
def test_every_public_name_is_documented(name: str) -> None:
    assert any(re.search(rf"\b{name}\b", text) for text in TEXT.values())


@pytest.mark.parametrize("number", range(1, 20))
def test_every_decision_is_traceable_from_code_and_documents(number: int) -> None:
    mark = re.compile(rf"\bP{number}\b|\bP(\d+)-P?(\d+)\b")

    def names_it(text: str) -> bool:
        return any(m[1] is None or int(m[1]) <= number <= int(m[2]) for m in mark.finditer(text))

    sources = [p.read_text() for p in (ROOT / "taskmq").rglob("*.py")]
    assert any(names_it(s) for s in sources), f"P{number} is named nowhere in the code"
    assert f"| P{number} |" in TEXT[ROOT / "docs" / "priority.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    broken = [
        target
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", TEXT[page])
        if "://" not in target and not (page.parent / target).exists()
    ]

    assert not broken


def test_the_readme_has_exactly_its_two_set_up_commands() -> None:
    marks = re.findall(r"<!-- (\S+)-command -->\n```sh\n(.+)\n```", TEXT[ROOT / "README.md"])

    assert [name for name, _ in marks] == ["demo", "test"]
    assert "taskmq demo" in marks[0][1]
    assert "pytest" in marks[1][1]


@pytest.mark.parametrize("number", range(1, 13))
def test_every_item_of_the_seeds_list_has_a_named_test(number: int) -> None:
    named = [
        path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(rf"def test_{number:02}_", path.read_text())
    ]

    assert named, f"§9 item {number}: no test is named test_{number:02}_…"
