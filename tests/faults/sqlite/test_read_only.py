"""A file or directory one may not write in (row 11), and one that is somebody else's (row 55) (I11)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import taskmq.testing
from taskmq import State
from taskmq.errors import TransportUnavailable
from taskmq.transports.sqlite import SQLiteTransport
from taskmq.worker.exits import EXIT_USAGE
from tests.faults.sqlite.actors import ROOT, message
from tests.faults.sqlite.small_disks import small_disk
from tests.support.waiting import wait_until

NOBODY = 65534

# Root may write everywhere, so it becomes somebody else first; anybody else is subject to permissions anyway.
# What it reads of the package it reads before: that may lie where others may not look.
AS_OTHER = f"""
import ctypes, importlib.readers, os, pkgutil, sys, traceback
import taskmq, taskmq.app
for module in pkgutil.walk_packages(taskmq.__path__, "taskmq."):
    if not module.name.startswith(("taskmq.compat", "taskmq.testing", "taskmq.cli", "taskmq.__main__")):
        __import__(module.name)
from taskmq.transports.sqlite import migrations
migrations.scripts()
if os.getuid() == 0:
    os.setgid({NOBODY}); os.setuid({NOBODY})
from taskmq import App
app = App(broker_url="sqlite:///" + sys.argv[2])
if sys.argv[1] == "submit":
    app.submit("jobs.work")
else:
    from taskmq.worker.options import WorkerOptions
    from taskmq.worker.worker import Worker
    sys.exit(Worker(app, WorkerOptions(concurrency=1, pool="solo")).run())
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory others may look into: pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="taskmq-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def as_other(what: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", "-c", AS_OTHER, what, str(path)],
        capture_output=True,
        text=True,
        timeout=40,
        cwd=path.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(path.parent)},
    )


def made(path: Path) -> bytes:
    """A database with one message that nobody has open; its content."""
    transport = SQLiteTransport(path)
    transport.open()
    transport.submit([message("a")])
    transport.close()
    return path.read_bytes()


def other_uid() -> int:
    return os.getuid() or NOBODY


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has other permissions")
@pytest.mark.parametrize("what", ["directory", "file"])
def test_a_producer_is_told_which_file_and_which_user(folder: Path, what: str) -> None:
    path = folder / "queue.db"
    before = made(path)
    path.chmod(0o444)
    # A lock file that all may use leaves only the database itself in the way.
    Path(f"{path}.lock").chmod(0o444 if what == "directory" else 0o666)
    folder.chmod(0o555)

    ended = as_other("submit", path)

    said = ended.stderr.strip().splitlines()[-1]
    assert said.startswith("taskmq.errors.TransportUnavailable: ")
    assert str(path) in said
    assert f"by user {other_uid()}" in said
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has other permissions")
def test_a_worker_that_may_not_write_does_not_start(folder: Path) -> None:
    path = folder / "queue.db"
    made(path)
    path.chmod(0o444)
    folder.chmod(0o555)

    ended = as_other("work", path)

    assert ended.returncode == EXIT_USAGE, ended.stderr
    assert f"by user {other_uid()}" in ended.stderr


def test_a_worker_whose_file_becomes_read_only_waits_and_goes_on(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = taskmq.testing.app(broker_url=f"sqlite:///{path}")
    work = app.task(name="jobs.work")(lambda: None)
    first = work.delay()
    with taskmq.testing.worker(app) as worker:
        worker.run_until_idle()
        assert first.state is State.SUCCEEDED
        second = work.delay()
        writer = worker.coordinator.transport._store._writer  # type: ignore[attr-defined]
        writer.execute("PRAGMA query_only=ON")
        for _ in range(30):
            worker.step()
            worker.clock.advance(1)
        assert not second.ready()
        assert "cannot be opened for writing by user" in caplog.text
        writer.execute("PRAGMA query_only=OFF")
        worker.clock.advance(10)
        worker.run_until_idle()
        assert second.state is State.SUCCEEDED
    app.close()


def test_a_read_only_file_system_is_named_and_left_alone(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "4m") as place:
        path = place / "queue.db"
        before = made(path)
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)

        with pytest.raises(TransportUnavailable, match="Read-only file system") as refused:
            SQLiteTransport(path).open()

        assert refused.value.retryable
        assert str(path) in str(refused.value)
        assert path.read_bytes() == before


def test_a_host_that_is_renamed_keeps_its_worker(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = taskmq.testing.app(broker_url=f"sqlite:///{path}")
    work = app.task(name="jobs.work")(lambda: None)
    with taskmq.testing.worker(app, name="w") as worker:
        worker.step()
        monkeypatch.setattr("socket.gethostname", lambda: "renamed")
        result = work.delay()
        worker.clock.advance(60)
        wait_until(lambda: worker.run_until_idle() == 0)

        (row,) = app.transport.coordination.workers()
        assert (row.name, row.host) == ("w", "renamed")
        assert result.state is State.SUCCEEDED
    app.close()
