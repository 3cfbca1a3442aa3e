"""Two workers with one name or one pid file: reliability row 54 (I2)."""

from __future__ import annotations

import os
import signal
import subprocess

from tests.faults.worker.conftest import Site, alive, children, kill
from tests.support.waiting import wait_until


def command(site: Site, *options: str) -> subprocess.Popen[str]:
    """A worker as a service manager starts it."""
    return site.processes.taskmq(
        *("-A", "jobs", "worker", "-c", "1", *options), env={"SETTINGS": '{"lease": 1.0}'}
    )


def names(site: Site) -> list[str]:
    return [worker.name for worker in site.app.transport.coordination.workers()]


def test_a_pid_file_that_a_live_worker_holds_keeps_a_second_one_from_starting(site: Site) -> None:
    pid_file = site.folder / "worker.pid"
    first = command(site, "--pidfile", str(pid_file), "-n", "one")
    wait_until(lambda: names(site) == ["one"], what="the first worker")
    second = command(site, "--pidfile", str(pid_file), "-n", "two")
    assert second.wait(10) == 5
    assert f"held by a live worker, pid {first.pid}" in site.log(second)
    assert pid_file.read_text() == f"{first.pid}\n"
    assert names(site) == ["one"]
    first.terminate()
    assert first.wait(5) == 0
    assert not pid_file.exists()


def test_the_pid_file_of_a_killed_worker_is_taken_over_though_its_number_lives(site: Site) -> None:
    pid_file = site.folder / "worker.pid"
    first = command(site, "--pidfile", str(pid_file))
    wait_until(lambda: names(site), what="the first worker")
    kill(first.pid)
    assert first.wait(5) == -signal.SIGKILL
    # The number was given to somebody else meanwhile.
    pid_file.write_text(f"{os.getpid()}\n")
    second = command(site, "--pidfile", str(pid_file), "-n", "two")
    wait_until(lambda: "two" in names(site), what="the second worker")
    assert pid_file.read_text() == f"{second.pid}\n"


def test_a_pid_file_is_free_once_its_worker_is_killed_though_a_process_of_a_task_lives(
    site: Site,
) -> None:
    site.add(
        "\n@app.task\ndef leave():\n"
        "    pid = os.fork()\n    if pid: return pid\n"
        "    time.sleep(60)\n    os._exit(0)\n"
    )
    pid_file = site.folder / "worker.pid"
    first = command(site, "--pidfile", str(pid_file))
    left = site.submit("leave").get(timeout=10)
    kill(first.pid)
    second = command(site, "--pidfile", str(pid_file), "-n", "two")
    wait_until(lambda: "two" in names(site), what="the second worker")
    assert alive(left)
    assert pid_file.read_text() == f"{second.pid}\n"


def test_a_name_that_a_live_worker_has_gets_a_suffix_and_both_serve(site: Site) -> None:
    first = site.worker("twin", concurrency=1)
    second = site.launch("twin", concurrency=1)
    wait_until(lambda: len(names(site)) == 2, what="the second worker")
    other = f"twin-{second.pid}"
    assert names(site) == ["twin", other]
    assert "event=worker.renamed" in site.log(second)
    both = [site.submit("hold", f"one-{n}") for n in range(2)]
    for n in range(2):
        site.started(f"one-{n}")
    site.go()
    assert {result.get(timeout=5) for result in both} == {
        children(process.pid)[0] for process in (first, second)
    }


def test_workers_that_take_one_name_at_the_same_moment_end_with_different_ones(site: Site) -> None:
    workers = [site.launch("twin", concurrency=1) for _ in range(4)]
    wait_until(lambda: all("event=worker.banner" in site.log(w) for w in workers), what="the start")
    wait_until(lambda: len(names(site)) == 4, what="four workers")
    assert len(set(names(site))) == 4


def test_a_killed_worker_s_name_is_free_and_its_messages_wait_for_their_leases(site: Site) -> None:
    first = site.worker("twin")
    result = site.submit("nap", "one", 30, 0)
    site.started("one")
    kill(first.pid)
    first.wait(5)
    second = site.launch("twin")
    # The name alone gives no right to them: what the first one held comes back counted.
    assert result.get(timeout=8) == "twin"
    assert [note[4] for note in site.notes("start", "one")] == ["1", "2"]
    assert "event=worker.renamed" not in site.log(second)
    assert "event=lease_lost" not in site.log(second)


def test_a_stopped_worker_s_name_is_not_free_and_its_late_end_changes_nothing(site: Site) -> None:
    first = site.worker("twin", pool="threads", concurrency=1)
    result = site.submit("nap", "one", 0.1, 0)
    site.started("one")
    site.stop(first)
    second = site.launch("twin", concurrency=1)
    assert result.get(timeout=8) == f"twin-{second.pid}"
    kill(first.pid, signal.SIGCONT)
    wait_until(lambda: "event=lease_lost" in site.log(first), what="lease_lost")
    assert result.get(timeout=0) == f"twin-{second.pid}"
