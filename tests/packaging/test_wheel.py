"""What is built is what stands in the tree.

With `packages = find:` the compat folder silently fell out of the wheel; so the wheel's names are compared
with the files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from an sdist of this tree."""
    out = tmp_path_factory.mktemp("dist")
    source = out / "source"
    left_out = shutil.ignore_patterns(
        ".git",
        ".venv",
        "build",
        "dist",
        "*.egg-info",
        "__pycache__",
        ".*_cache",
        ".hypothesis",
        "*.db*",
    )
    # The symlink stays one: followed, the compat folder would be there twice.
    shutil.copytree(ROOT, source, symlinks=True, ignore=left_out)
    built = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    (path,) = out.glob("*.whl")
    return zipfile.ZipFile(path)


def packaged(wheel: zipfile.ZipFile) -> set[str]:
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


def expected() -> set[str]:
    names = set()
    for folder, package in ((ROOT / "taskmq", "taskmq"), (ROOT / "compat", "taskmq/compat")):
        for path in folder.rglob("*"):
            if path.suffix in {".py", ".sql", ".typed"} and "__pycache__" not in path.parts:
                names.add(f"{package}/{path.relative_to(folder)}")
    return names


@pytest.mark.timeout(120)
def test_the_wheel_holds_every_source_file_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    assert packaged(wheel) == expected()


@pytest.mark.timeout(120)
def test_the_wheel_ships_no_top_level_package_but_taskmq(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0] for name in packaged(wheel)} == {"taskmq"}


@pytest.mark.timeout(120)
def test_the_wheel_installs_one_command_and_it_is_not_celery(wheel: zipfile.ZipFile) -> None:
    (entry_points,) = (n for n in wheel.namelist() if n.endswith(".dist-info/entry_points.txt"))

    assert wheel.read(entry_points).decode().split() == [
        "[console_scripts]",
        "taskmq",
        "=",
        "taskmq.cli.main:main",
    ]


def test_compat_is_one_relative_symlink() -> None:
    link = ROOT / "taskmq" / "compat"

    assert link.is_symlink()
    assert str(link.readlink()) == "../compat"
