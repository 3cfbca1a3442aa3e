"""Workers killed in the windows between two commits: reliability rows 3, 4 and 5 (I1, I3, I4)."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from taskmq import State
from taskmq.failpoints import VARIABLE
from tests.faults.worker.conftest import Site
from tests.support.waiting import wait_until


@pytest.fixture
def armed(site: Site) -> Callable[[str], None]:
    """Arms the workers that are started next, and none after them."""

    def arm(points: str) -> None:
        site.environment[VARIABLE] = points

    return arm


def test_a_worker_killed_between_claim_and_start_has_wasted_a_delivery_and_nothing_else(
    site: Site, armed
) -> None:
    armed("after_claim=kill")
    first = site.worker("a")
    result = site.submit("nap", "one", 0)
    assert first.wait(5) == -signal.SIGKILL
    assert site.notes("start") == []
    assert result.record() is None
    armed("")
    site.worker("b")
    assert result.get(timeout=6) == "b"
    assert [note[3:] for note in site.notes("start", "one")] == [["b", "2"]]


def test_a_message_that_was_only_held_by_a_killed_worker_comes_back_uncounted(
    site: Site, armed
) -> None:
    armed("after_claim=kill#2")
    first = site.worker("a", concurrency=1, prefetch=2)
    running = site.submit("nap", "running", 30, 0)
    site.started("running")
    held = site.submit("nap", "held", 0)
    assert first.wait(5) == -signal.SIGKILL
    armed("")
    site.worker("b")
    assert [running.get(timeout=6), held.get(timeout=6)] == ["b", "b"]
    assert site.notes("start", "held")[0][3:] == ["b", "1"]
    assert site.notes("start", "running")[1][3:] == ["b", "2"]


@pytest.mark.parametrize("point", ["before_settle", "in_settle"])
def test_a_worker_killed_before_its_ack_is_stored_runs_the_task_twice_and_stores_one_result(
    site: Site, armed, point: str
) -> None:
    armed(f"{point}=kill")
    first = site.worker("a")
    result = site.submit("nap", "one", 0)
    assert first.wait(5) == -signal.SIGKILL
    # Result and ack are one commit: neither is there.
    assert len(site.notes("end", "one")) == 1
    assert result.record() is None
    armed("")
    site.worker("b")
    assert result.get(timeout=6) == "b"
    assert [note[3:] for note in site.notes("end", "one")] == [["a", "1"], ["b", "2"]]
    assert site.app.transport.operators.depth() == []


def test_a_worker_killed_after_its_ack_is_stored_has_stored_the_result_too(
    site: Site, armed
) -> None:
    armed("after_settle=kill")
    first = site.worker("a")
    result = site.submit("nap", "one", 0)
    assert first.wait(5) == -signal.SIGKILL
    assert (result.state, result.get(timeout=0)) == (State.SUCCEEDED, "a")
    assert site.app.transport.operators.depth() == []


def test_a_child_killed_when_its_task_has_ended_runs_it_again(site: Site, armed) -> None:
    site.settings["lease"] = 30.0
    armed(f"after_run=kill@{site.folder / 'once'}")
    worker = site.worker("a")
    result = site.submit("nap", "one", 0)
    assert result.get(timeout=5) == "a"
    wait_until(lambda: "event=child.lost" in site.log(worker))
    assert [note[4] for note in site.notes("end", "one")] == ["1", "2"]
