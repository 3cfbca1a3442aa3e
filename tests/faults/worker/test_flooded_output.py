"""Tasks that print without end: reliability row 28 (I10, I12)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.worker.conftest import Site, alive, children
from tests.support.waiting import wait_until

MEBIBYTES = 100

TASKS = """
@app.task
def shout(name, mebibytes):
    note("start", name, os.getpid())
    for _ in range(mebibytes):
        sys.stdout.write("x" * (1 << 20))  # and never a newline
    sys.stdout.flush()
    return os.getpid()
"""


def peak(pid: int) -> int:
    """The most resident memory a process has had, in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


@contextmanager
def growth_below(pids: list[int], mebibytes: int) -> Iterator[None]:
    before = {pid: peak(pid) for pid in pids}
    yield
    assert all(alive(pid) for pid in pids)
    grown = {pid: peak(pid) - before[pid] for pid in pids}
    assert max(grown.values()) < mebibytes * 1024, grown


def test_a_task_that_prints_a_lot_into_nothing_costs_no_memory(site: Site) -> None:
    site.add(TASKS)
    site.prepare("import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1)")
    worker = site.worker("a", concurrency=1)
    pid = site.submit("pid").get(timeout=5)
    with growth_below([worker.pid, pid], 50):
        assert site.submit("shout", "one", MEBIBYTES).get(timeout=30) == pid


def test_a_task_that_prints_into_a_pipe_nobody_reads_stands_still_alone(site: Site) -> None:
    site.add(TASKS)
    site.settings["lease"] = 0.6
    pipe = site.folder / "stdout"
    os.mkfifo(pipe)
    # Opened for both, or the worker would wait here for a reader.
    site.prepare(f"import os; os.dup2(os.open({str(pipe)!r}, os.O_RDWR), 1)")
    worker = site.worker("a", concurrency=2)
    shouting = site.submit("shout", "one", MEBIBYTES)
    shouting_pid = int(site.started("one")[2])
    wait_until(lambda: len(children(worker.pid)) == 2)
    with growth_below([worker.pid, *children(worker.pid)], 50):
        # Longer than its lease, which is renewed meanwhile, beside the work of the other child.
        until = time.monotonic() + 2 * site.settings["lease"]
        while time.monotonic() < until:
            assert site.submit("pid").get(timeout=5) != shouting_pid
        assert len(site.notes("start", "one")) == 1
        assert drained(pipe, lambda: shouting.state.final) == MEBIBYTES << 20
        assert shouting.get(timeout=5) == shouting_pid
    worker.terminate()
    assert worker.wait(5) == 0


def test_a_worker_whose_task_hangs_in_a_full_pipe_stops_when_told(site: Site) -> None:
    site.add(TASKS)
    pipe = site.folder / "stdout"
    os.mkfifo(pipe)
    site.prepare(f"import os; os.dup2(os.open({str(pipe)!r}, os.O_RDWR), 1)")
    worker = site.worker("a", drain_timeout=0.2)
    site.submit("shout", "one", MEBIBYTES)
    site.started("one")
    worker.terminate()
    assert worker.wait(5) == 0


def drained(pipe: Path, over) -> int:
    """Read a pipe until it is empty and `over` says that nothing more comes; the number of bytes."""
    fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    read = 0

    def more() -> bool:
        nonlocal read
        ended = over()
        try:
            while data := os.read(fd, 1 << 16):
                read += len(data)
        except BlockingIOError:
            pass
        return bool(ended)

    try:
        # A pipe holds little, so it is looked at often.
        wait_until(more, 30, every=0.001, what="the end of the output")
    finally:
        os.close(fd)
    return read
