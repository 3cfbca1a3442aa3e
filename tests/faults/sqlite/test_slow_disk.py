"""A disk that takes 200 ms for each fsync (row 48): it costs throughput and no lease (I2)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taskmq import State
from taskmq.transports.base import Outcome, ReserveRequest, Verb
from taskmq.transports.sqlite import SQLiteTransport
from taskmq.transports.sqlite.options import SQLiteOptions
from tests.faults.sqlite.actors import QUEUES, ROOT, message
from tests.faults.worker.conftest import Site
from tests.support.waiting import wait_until

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void slowly(void) {
    const char *path = getenv("SLOW_FSYNC_LOG");
    usleep(200 * 1000);
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        if (write(fd, "x", 1) < 0) {}
        close(fd);
    }
}

int fsync(int fd) {
    slowly();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int fdatasync(int fd) {
    slowly();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
"""

NAPS = 8


@pytest.fixture
def slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Processes started from here on have a slow disk; each fsync leaves a letter in this file."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and LD_PRELOAD")
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text(SHIM)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, timeout=30)
    log = tmp_path / "fsyncs"
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("SLOW_FSYNC_LOG", str(log))
    return log


@pytest.mark.usefixtures("slow_disk")
def test_who_commits_slowly_without_a_pause_leaves_others_their_turn(actor, path: Path) -> None:
    transport = SQLiteTransport(path, options=SQLiteOptions(busy_timeout=2.0))
    transport.open()
    names = [f"m{n}" for n in range(NAPS)]
    transport.submit([message(name) for name in names])
    request = ReserveRequest(worker="w", queues=QUEUES, slots=NAPS, lease=5.0)
    held = transport.turn((), request).deliveries
    producer = actor("produce_durably")
    producer.until_many("accepted", 2)

    # One transaction each, for all the leases; a write that is kept out for two seconds raises.
    for _ in range(8):
        assert transport.extend(held, 5.0) == ()
        assert transport.coordination.reap().done == 0
    producer.kill()

    assert transport.settle([Outcome(delivery=d, verb=Verb.FINISH) for d in held]) == ()
    transport.close()


@pytest.mark.nightly
def test_leases_are_renewed_in_time_while_every_commit_of_producers_is_slow(
    slow_disk: Path, site: Site
) -> None:
    # Eight leases, each renewed three times a lease: one by one at 200 ms they would all be lost.
    site.settings = {"lease": 1.5, "events": False}
    worker = site.worker("w", pool="threads", concurrency=NAPS)
    naps = [site.submit("nap", f"n{n}", 3.0) for n in range(NAPS)]
    for n in range(NAPS):
        site.started(f"n{n}")
    producer = site.processes.python(
        "-m",
        "tests.faults.sqlite.actors",
        "produce_durably",
        str(site.folder / "q.db"),
        env={"PYTHONPATH": str(ROOT)},
        name="producer",
    )
    wait_until(lambda: all(nap.ready() for nap in naps), 30)

    assert producer.poll() is None
    assert len(site.processes.log(producer).splitlines()) >= 3
    assert slow_disk.stat().st_size >= 3
    assert [nap.state for nap in naps] == [State.SUCCEEDED] * NAPS
    assert [len(site.notes("start", f"n{n}")) for n in range(NAPS)] == [1] * NAPS
    assert "event=lease_lost" not in site.log(worker)
