"""Which file a location names."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskmq.errors import ConfigError
from taskmq.transports.sqlite.paths import resolve_path


def test_an_absolute_path_is_what_it_says(tmp_path: Path) -> None:
    assert resolve_path(tmp_path / "q.db", "/elsewhere") == tmp_path.resolve() / "q.db"


def test_home_comes_before_the_project_and_the_project_before_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, project, here = (tmp_path / name for name in ("home", "project", "here"))
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("TASKMQ_HOME", raising=False)

    assert resolve_path("q.db", project, environ={"TASKMQ_HOME": str(home)}) == home / "q.db"
    assert resolve_path("q.db", project, environ={}) == project / "q.db"
    assert resolve_path("q.db", environ={}) == here / "q.db"


def test_the_home_is_read_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKMQ_HOME", str(tmp_path))

    assert resolve_path("q.db", "/project") == tmp_path / "q.db"


def test_two_names_of_one_file_are_one_path(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)

    assert resolve_path(tmp_path / "link" / "q.db") == resolve_path(real / "x" / ".." / "q.db")


@pytest.mark.parametrize("location", ["", ":memory:", "a\0b"])
def test_what_is_no_file_is_refused(location: str) -> None:
    with pytest.raises(ConfigError):
        resolve_path(location)
