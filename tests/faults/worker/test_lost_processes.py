"""Processes that die or stop: reliability rows 1, 2, 8, 23, 24, 26, with real ones."""

from __future__ import annotations

import signal

import pytest

from taskmq import State
from tests.faults.worker.conftest import Site, alive, kill
from tests.support.waiting import wait_until


def test_a_killed_child_s_task_runs_again_at_once_and_its_sibling_goes_on(site: Site) -> None:
    site.settings["lease"] = 30.0  # so that it is not the lease that brings it back
    site.worker("a")
    result = site.submit("nap", "victim", 30, 0)
    sibling = site.submit("nap", "sibling", 0.5)
    victim = site.started("victim")
    site.started("sibling")
    kill(victim[2])
    assert result.get(timeout=4) == "a"
    assert sibling.get(timeout=4) == "a"
    assert [note[4] for note in site.notes("start", "victim")] == ["1", "2"]
    assert len(site.notes("start", "sibling")) == 1


def test_a_killed_worker_s_children_die_and_its_task_runs_elsewhere_after_the_lease(
    site: Site,
) -> None:
    first = site.worker("a")
    result = site.submit("nap", "one", 30, 0)
    child = int(site.started("one")[2])
    site.worker("b")
    kill(first.pid)
    wait_until(lambda: not alive(child), what="the child's death")
    assert result.get(timeout=6) == "b"
    assert [note[3:] for note in site.notes("start", "one")] == [["a", "1"], ["b", "2"]]


def test_a_worker_stopped_past_its_lease_finds_it_lost_and_changes_nothing(site: Site) -> None:
    first = site.worker("a", pool="threads")
    result = site.submit("nap", "one", 30, 0.6)
    site.started("one")
    site.stop(first)
    site.worker("b")
    site.started("one", 2)
    kill(first.pid, signal.SIGCONT)
    wait_until(lambda: "event=lease_lost" in site.log(first), what="lease_lost")
    assert result.get(timeout=5) == "b"
    assert first.poll() is None


def test_a_run_that_ends_while_its_worker_is_stopped_is_settled_by_the_other_alone(
    site: Site,
) -> None:
    first = site.worker("a")
    result = site.submit("nap", "one", 0.5, 0.3)
    site.started("one")
    site.stop(first)
    site.worker("b")
    site.started("one", 2)
    wait_until(lambda: site.notes("end", "one"))  # the child of the stopped worker
    assert result.get(timeout=5) == "b"
    kill(first.pid, signal.SIGCONT)
    wait_until(lambda: "event=lease_lost" in site.log(first), what="lease_lost")
    assert result.get(timeout=0) == "b"
    assert site.app.transport.operators.dead_letters() == []


@pytest.mark.parametrize("how", ["segfault", "os._exit", "SIGKILL"])
def test_a_poison_message_is_buried_and_the_others_flow(site: Site, how: str) -> None:
    site.settings.update(max_deliveries=3, lease=30.0)
    site.worker("a")
    poison = site.submit("die", how, priority=9)
    good = [site.submit("pid") for _ in range(20)]
    for result in good:
        assert result.get(timeout=5)
    wait_until(lambda: poison.state is State.DEAD)
    (letter,) = site.app.transport.operators.dead_letters()
    assert (letter.reason, letter.deliveries) == ("crash-loop", 3)
    assert {"segfault": "SIGSEGV", "os._exit": "code 0", "SIGKILL": "SIGKILL"}[how] in letter.error
    assert len(site.notes("start", "die")) == 3


def test_a_task_that_exits_fails_and_its_child_stays(site: Site) -> None:
    site.worker("a", concurrency=1)
    before = site.submit("pid").get(timeout=5)
    failed = site.submit("die", "sys.exit")
    wait_until(lambda: failed.state is State.FAILED)
    assert site.submit("pid").get(timeout=5) == before


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_children_serve_however_they_are_started(site: Site, start_method: str) -> None:
    site.worker("a", start_method=start_method, max_tasks_per_child=2, concurrency=1)
    pids = [site.submit("pid").get(timeout=5) for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]
