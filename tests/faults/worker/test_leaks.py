"""Twenty thousand tasks, with two hundred recycled children and with two: reliability row 52 (I12)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.worker.conftest import Site, children
from tests.support.waiting import wait_until

TASKS = 20_000
EACH = 2_000

NOTHING = """
@app.task
def nothing():
    pass
"""


class Held(NamedTuple):
    """What a process holds: descriptors, and resident memory in KiB."""

    descriptors: int
    memory: int


def held(pid: int) -> Held:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Held(len(os.listdir(f"/proc/{pid}/fd")), pages * os.sysconf("SC_PAGE_SIZE") // 1024)


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("per_child", [100, None], ids=["recycled", "kept"])
def test_a_worker_and_its_children_hold_no_more_after_many_tasks(
    site: Site, per_child: int | None
) -> None:
    site.add(NOTHING)
    worker = site.worker("a", max_tasks_per_child=per_child)
    ran = _run(site, EACH)  # caches and buffers have their size then
    first = children(worker.pid)
    before = _settled(worker.pid)
    while ran < TASKS:
        ran += _run(site, EACH)
    last = children(worker.pid)
    after = _settled(worker.pid)
    assert bool(set(first) & set(last)) == (per_child is None)
    if per_child is None:
        assert set(after) == set(before)
    for pid in set(after) & set(before):
        assert after[pid].descriptors == before[pid].descriptors
        # A tenth of what the matrix allows for each task.
        assert after[pid].memory - before[pid].memory < (TASKS - EACH) / 10, (before, after)
    worker.terminate()
    assert worker.wait(10) == 0


def _run(site: Site, count: int) -> int:
    for _ in range(count):
        site.submit("nothing", ignore_result=True)
    wait_until(lambda: not site.app.transport.operators.depth(), 120, every=0.1, what="all run")
    return count


def _settled(worker: int) -> dict[int, Held]:
    """What worker and children hold once all are there and idle."""

    def all_of_it() -> dict[int, Held]:
        return {pid: held(pid) for pid in (worker, *children(worker))}

    found = [all_of_it()]

    def still() -> bool:
        found.append(all_of_it())
        last = [{pid: h.descriptors for pid, h in look.items()} for look in found[-2:]]
        return len(found[-1]) == 3 and last[0] == last[1]

    wait_until(still, every=0.3, what="two children and a steady number of descriptors")
    return found[-1]
