"""The public API as a type checker sees it: `cases.txt` beside this file, line by line."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is a development tool")

CASES = Path(__file__).with_name("cases.txt")
ROOT = CASES.parents[2]
_SAID = re.compile(
    r'^cases\.py:(\d+): (?:note: Revealed type is "(?P<type>.*)"|error: .*\[(?P<code>[\w-]+)\])$'
)
_EXPECTED = re.compile(r"# (?:R: (?P<type>.*)|E: (?P<code>[\w-]+))$")


def expectations() -> dict[int, str]:
    """Line number to the type or the error's code that is expected there."""
    expected = {}
    for number, line in enumerate(CASES.read_text().splitlines(), 1):
        match = _EXPECTED.search(line)
        if match:
            expected[number] = match["type"] or match["code"]
    return expected


@pytest.fixture(scope="module")
def said(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> dict[int, set[str]]:
    """Line number to what mypy says there, types as people write them."""
    assert pytestconfig.cache is not None
    kept = pytestconfig.cache.mkdir("mypy")
    folder = tmp_path_factory.mktemp("typing")
    (folder / "cases.py").write_text(CASES.read_text())
    run = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary"),
            *("--python-version", "3.10", "--cache-dir", str(kept), "cases.py"),
        ],
        cwd=folder,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert not run.stderr, run.stderr
    found: dict[int, set[str]] = defaultdict(set)
    for line in run.stdout.splitlines():
        match = _SAID.match(line)
        if match:
            found[int(match[1])].add(plain(match["type"] or match["code"]))
        elif ": error:" in line:
            pytest.fail(f"not about a case: {line}")
    return found


def plain(text: str) -> str:
    text = re.sub(r"\bbuiltins\.", "", text)
    union = re.fullmatch(r"Union\[(\S+), (\S+)\]", text)
    return f"{union[1]} | {union[2]}" if union else text


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("line", "expected"), expectations().items())
def test_a_type_checker_sees(line: int, expected: str, said: dict[int, set[str]]) -> None:
    assert said.get(line) == {expected}, CASES.read_text().splitlines()[line - 1]


@pytest.mark.timeout(180)
def test_nothing_else_is_reported(said: dict[int, set[str]]) -> None:
    assert set(said) == set(expectations())
