"""The files of a database: permissions, places no database should be in, and which file it is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from taskmq.errors import ConfigError, TransportUnavailable
from taskmq.transports.sqlite import SQLiteTransport, files
from taskmq.transports.sqlite.options import SQLiteOptions

OPTIONS = SQLiteOptions()


def mode(path: Path | str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def prepare(path: Path, options: SQLiteOptions = OPTIONS) -> bool:
    """What opening does before SQLite comes into it; whether it made the file."""
    files.check_place(path, options)
    return files.create(path, options.mode)


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=lambda mask: f"umask{mask:03o}")
def umask(request: pytest.FixtureRequest):
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("wanted", [0o600, 0o660])
def test_every_file_has_the_mode_that_was_asked_for(path: Path, wanted: int, bench) -> None:
    transport = SQLiteTransport(path, options=SQLiteOptions(mode=wanted))
    transport.open()
    transport.submit([bench.message("a")])

    assert {mode(f"{path}{suffix}") for suffix in ("", "-wal", "-shm", ".lock")} == {wanted}
    transport.close()


def test_opening_says_whether_it_made_the_file(path: Path) -> None:
    for expected in (True, False):
        transport = SQLiteTransport(path)
        assert not transport.created
        transport.open()
        assert transport.created is expected
        transport.close()


def test_a_missing_directory_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.*does not exist"):
        prepare(tmp_path / "nowhere" / "q.db")

    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_the_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir()

    with pytest.raises(ConfigError, match="not a regular file"):
        prepare(path)


def test_a_link_laid_where_the_file_will_be_is_not_followed(tmp_path: Path, path: Path) -> None:
    target = tmp_path / "target"
    path.symlink_to(target)

    with pytest.raises(ConfigError, match="symbolic link"):
        prepare(path)
    assert not target.exists()


def test_a_link_to_a_database_means_that_database(tmp_path: Path, path: Path, bench) -> None:
    transport = SQLiteTransport(path)
    transport.open()
    transport.submit([bench.message("a")])
    link = tmp_path / "link.db"
    link.symlink_to(path)
    other = SQLiteTransport(link)
    other.open()

    assert other.describe() == str(path)
    assert [found.message.task_id for found in other.operators.find("a")] == ["a"]
    assert not (tmp_path / "link.db.lock").exists()
    other.close()
    transport.close()


def test_a_directory_everybody_may_write_in_is_refused(path: Path) -> None:
    path.parent.chmod(0o777)

    with pytest.raises(ConfigError, match="everybody may write"):
        prepare(path)
    assert not path.exists()


def test_in_a_sticky_directory_our_own_file_is_accepted(path: Path) -> None:
    path.parent.chmod(0o1777)

    assert prepare(path)
    assert not prepare(path)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", ".lock"])
def test_in_a_sticky_directory_a_file_somebody_laid_there_is_refused(
    path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.chmod(0o1777)
    Path(f"{path}{suffix}").touch()
    # Files are made by this user, so it is this user who becomes another; root's are always trusted.
    monkeypatch.setattr(files, "_trusted", lambda uid: False)

    with pytest.raises(ConfigError, match=r"belongs to user"):
        prepare(path)


@pytest.mark.parametrize(
    ("kind", "name"), [(0x6969, "NFS"), (0xFF534D42, "CIFS"), (0xFE534D42, "SMB")]
)
def test_a_network_file_system_is_refused_unless_it_is_allowed(
    path: Path, kind: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_statfs_type", lambda directory: kind)

    with pytest.raises(ConfigError, match=rf"network file system \({name}\).*network_fs=allow"):
        prepare(path)
    assert not path.exists()
    assert prepare(path, SQLiteOptions(network_fs=True))


def test_the_local_file_system_is_recognised(tmp_path: Path) -> None:
    assert files.network_file_system(str(tmp_path)) is None


def test_a_file_that_cannot_be_made_names_file_and_user(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(TransportUnavailable) as refused:
        prepare(path)
    monkeypatch.undo()
    assert str(path) in str(refused.value)
    assert f"user {os.getuid()}" in str(refused.value)


def test_the_identity_of_a_path_changes_with_the_file(path: Path) -> None:
    assert files.identity(str(path)) is None
    path.touch()
    first = files.identity(str(path))
    path.rename(path.with_suffix(".old"))
    path.touch()

    assert first is not None
    assert files.identity(str(path)) not in (None, first)


def test_a_link_to_nowhere_is_refused_where_the_location_is_resolved(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "target")

    with pytest.raises(ConfigError, match="symbolic link to nowhere"):
        SQLiteTransport(link)

    assert not (tmp_path / "target").exists()


def test_a_link_that_a_stranger_laid_in_a_directory_of_everybody_is_not_followed(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o1777)
    path.touch()
    link = tmp_path / "link.db"
    link.symlink_to(path)
    SQLiteTransport(link)
    monkeypatch.setattr(files, "_trusted", lambda uid: False)

    with pytest.raises(ConfigError, match="symbolic link of user"):
        SQLiteTransport(link)
