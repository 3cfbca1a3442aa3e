"""What others on the machine can see and touch: files, descriptors, command lines (reliability §6)."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
from pathlib import Path

import pytest

from taskmq import App
from taskmq.cli.logs import _OwnFile
from taskmq.cli.pidfile import PidFile
from taskmq.errors import ConfigError
from tests.faults.messages.conftest import Site
from tests.support.waiting import wait_until


@pytest.mark.parametrize("umask", [0, 0o022])
def test_database_log_and_their_side_files_are_ours_alone_whatever_the_umask(
    tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        with App(broker_url=f"sqlite:///{tmp_path}/q.db") as app:
            app.submit("jobs.work")
            _OwnFile(str(tmp_path / "worker.log")).close()
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)

    assert {"q.db", "q.db-wal", "q.db-shm", "worker.log"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_a_pid_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    link = tmp_path / "worker.pid"
    link.symlink_to(victim)

    with pytest.raises(ConfigError, match=r"--pidfile .*worker\.pid"), PidFile(str(link)):
        pass

    assert victim.read_text() == "mine"


def test_a_database_laid_as_a_link_or_in_a_place_of_everybody_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "victim")
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o777)

    for url in (f"sqlite:///{tmp_path}/link.db", f"sqlite:///{public}/q.db"):
        with pytest.raises(ConfigError), App(broker_url=url) as app:
            app.submit("jobs.work")

    assert not (tmp_path / "victim").exists()
    assert list(public.iterdir()) == []


def test_a_trigger_that_somebody_put_into_the_file_runs_no_function_of_ours(tmp_path: Path) -> None:
    """trusted_schema is off and no function or extension of ours can be reached from the file."""
    with App(broker_url=f"sqlite:///{tmp_path}/q.db") as app:
        app.submit("jobs.work")
    stranger = sqlite3.connect(tmp_path / "q.db")
    stranger.execute(
        "CREATE TRIGGER evil AFTER INSERT ON message BEGIN "
        "SELECT load_extension('/tmp/evil.so'); END"
    )
    stranger.execute("CREATE VIEW spy AS SELECT load_extension('/tmp/evil.so') AS x")
    stranger.commit()
    stranger.close()

    with App(broker_url=f"sqlite:///{tmp_path}/q.db") as app:
        with pytest.raises(Exception, match=r"(?i)load_extension|unsafe|not authorized"):
            app.submit("jobs.work")
        engine = app.transport._engine  # type: ignore[attr-defined]
        assert engine.write(lambda tx: tx.row("PRAGMA trusted_schema")[0]) == 0


def test_a_child_leaves_no_core_file(site: Site) -> None:
    _, child = site.submit("pids").get(timeout=20)

    limits = Path(f"/proc/{child}/limits").read_text()
    core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
    assert core.split()[4] == "0"


def test_command_lines_tell_nothing_but_what_the_operator_typed(site: Site) -> None:
    worker, child = site.submit("pids").get(timeout=20)
    site.submit("echo", "canary-7f3a").get(timeout=20)

    for pid in (worker, child):
        shown = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/comm").read_bytes()
        assert b"canary" not in shown
        assert b"taskmq" in shown


def test_what_a_task_starts_inherits_no_descriptor(site: Site) -> None:
    _, child = site.submit("pids").get(timeout=20)
    folder = f"/proc/{child}/fdinfo"
    closed = 0o2000000

    def inherited() -> list[str]:
        left = []
        for fd in os.listdir(folder):
            flags = Path(folder, fd).read_text().split("flags:")[1].split()[0]
            if int(fd) > 2 and not int(flags, 8) & closed:
                left.append(os.readlink(f"/proc/{child}/fd/{fd}"))
        return left

    assert inherited() == []


def test_a_second_worker_does_not_take_a_pid_file_that_is_held(site: Site) -> None:
    path = site.folder / "w.pid"
    first = site.processes.taskmq("-A", "jobs", "worker", "-n", "a", "--pidfile", str(path))
    wait_until(lambda: path.exists() and path.read_text(), what="the pid file")

    second = site.processes.taskmq("-A", "jobs", "worker", "-n", "b", "--pidfile", str(path))

    assert _code(second) == 5
    assert path.read_text() == f"{first.pid}\n"


def _code(process: subprocess.Popen[str]) -> int:
    return process.wait(timeout=20)
