"""Processes that are killed: reliability rows 1 and 2, with real ones (I1, I4)."""

from __future__ import annotations

import pytest

from tests.faults.worker.conftest import Site, alive, children, kill
from tests.support.waiting import wait_until


def test_a_killed_child_s_task_runs_again_at_once_in_a_new_one_and_its_sibling_goes_on(
    site: Site,
) -> None:
    site.settings["lease"] = 30.0  # so that it is not the lease that brings it back
    worker = site.worker("a")
    result = site.submit("nap", "victim", 30, 0)
    sibling = site.submit("hold", "sibling")
    victim = site.started("victim")
    pid = int(site.started("sibling")[2])
    kill(victim[2])
    # The other slot is taken all the time.
    assert result.get(timeout=4) == "a"
    site.go()
    assert sibling.get(timeout=4) == pid
    first, second = site.notes("start", "victim")
    assert (first[4], second[4]) == ("1", "2")
    assert len({first[2], second[2], str(pid)}) == 3
    assert len(site.notes("start", "sibling")) == 1
    assert "was killed by SIGKILL event=child.lost" in site.log(worker)


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_a_killed_worker_s_children_die_and_its_task_runs_elsewhere_after_the_lease(
    site: Site, start_method: str
) -> None:
    first = site.worker("a", start_method=start_method)
    result = site.submit("nap", "one", 30, 0)
    busy = int(site.started("one")[2])
    wait_until(lambda: len(children(first.pid)) == 2)
    both = children(first.pid)
    assert busy in both
    site.worker("b")
    kill(first.pid)
    wait_until(lambda: not any(map(alive, both)), what="the children's death")
    assert result.get(timeout=6) == "b"
    assert [note[3:] for note in site.notes("start", "one")] == [["a", "1"], ["b", "2"]]


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_children_serve_however_they_are_started(site: Site, start_method: str) -> None:
    site.worker("a", start_method=start_method, max_tasks_per_child=2, concurrency=1)
    pids = [site.submit("pid").get(timeout=5) for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]
