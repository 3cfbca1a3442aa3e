"""docs/guarantees.md names tests that exist, and has every row of the fault matrix it promises."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "guarantees.md").read_text()
SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^###? |\Z)", TEXT, re.MULTILINE | re.DOTALL))
NAMED = sorted(set(re.findall(r"`(tests/[^`\s]+)`", TEXT)))
ROWS = [*range(1, 35), 40, 41, 45, 46, 48, 49, *range(51, 56)]
#: Rows whose line is still to be written. To be emptied, and then it stays empty.
TO_BE_WRITTEN: frozenset[int] = frozenset()


def names_in(path: Path) -> set[str]:
    """`test_x`, `TestY` and `TestY::test_z` of a file."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found.add(node.name)
            found |= {
                f"{node.name}::{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
            }
        elif isinstance(node, ast.Assign):
            # A test made by something else: `TestStore = Model.TestCase`.
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            # A suite that is collected where it is imported.
            found |= {alias.asname or alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("named", NAMED)
def test_a_test_that_is_named_exists(named: str) -> None:
    file, _, name = named.partition("::")
    path = ROOT / file

    assert path.exists(), f"there is no {file}"
    if name:
        wanted = name.partition("[")[0]
        found = names_in(path)
        assert wanted in found or _imported(wanted, found), f"{file} has no {wanted}"


def _imported(wanted: str, found: set[str]) -> bool:
    """A class of a suite that the file takes over whole: `from … import *` cannot be looked into."""
    return "*" in found and "::" not in wanted


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_fault_matrix_has_its_line(row: int) -> None:
    written = any(re.search(rf"^\| {row} \|", text, re.MULTILINE) for text in SECTIONS.values())

    assert written is (row not in TO_BE_WRITTEN)


@pytest.mark.parametrize("title", SECTIONS)
def test_a_section_s_lines_all_name_a_test(title: str) -> None:
    lines = [line for line in SECTIONS[title].splitlines() if line.startswith("| ")][1:]

    assert lines
    for line in lines:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        assert "`tests/" in cells[-1] or cells[0] == "not in this version", line
