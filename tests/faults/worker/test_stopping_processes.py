"""Signals to real workers: reliability rows 6 and 7. Nothing stays claimed and no child alive (I9)."""

from __future__ import annotations

import os
import signal

import pytest

from taskmq import State
from tests.faults.worker.conftest import Site, alive, kill
from tests.support.waiting import wait_until


def test_term_hands_prefetched_messages_to_another_worker_at_once(site: Site) -> None:
    site.settings["lease"] = 30.0
    first = site.worker("a", concurrency=1, prefetch=10)
    running = site.submit("nap", "running", 1.0)
    site.started("running")
    held = [site.submit("nap", f"held-{n}", 0) for n in range(9)]
    wait_until(lambda: all(result.state is State.RESERVED for result in held))
    kill(first.pid, signal.SIGTERM)
    # Only started now: before, the first worker would have handed its prefetch to an idle one anyway.
    site.worker("b", concurrency=2)
    assert [result.get(timeout=4) for result in held] == ["b"] * 9
    assert {note[4] for n in range(9) for note in site.notes("start", f"held-{n}")} == {"1"}
    assert running.get(timeout=4) == "a"
    assert first.wait(5) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_first_signal_lets_the_running_task_end(site: Site, number: signal.Signals) -> None:
    worker = site.worker("a")
    result = site.submit("nap", "one", 0.5)
    site.started("one")
    kill(worker.pid, number)
    assert worker.wait(5) == 0
    assert result.state is State.SUCCEEDED


def test_a_signal_to_the_whole_group_leaves_the_children_to_the_worker(site: Site) -> None:

    worker = site.worker("a")
    result = site.submit("nap", "one", 0.5)
    site.started("one")
    os.killpg(worker.pid, signal.SIGINT)  # Ctrl-C in a terminal
    assert worker.wait(5) == 0
    assert result.state is State.SUCCEEDED


def test_past_the_deadline_children_are_killed_and_the_message_is_handed_back(site: Site) -> None:
    site.settings["lease"] = 30.0
    worker = site.worker("a", drain_timeout=0.3)
    result = site.submit("nap", "one", 30)
    child = int(site.started("one")[2])
    kill(worker.pid, signal.SIGTERM)
    assert worker.wait(5) == 0
    assert not alive(child)
    assert result.state is State.QUEUED
    (found,) = site.app.transport.operators.find(result.id)
    assert found.deliveries == 0


@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGTERM, signal.SIGTERM),
        (signal.SIGINT, signal.SIGINT),
        (signal.SIGTERM, signal.SIGQUIT),
        (signal.SIGQUIT,),
    ],
    ids=lambda numbers: "+".join(n.name for n in numbers),
)
def test_a_second_signal_or_quit_is_now(site: Site, numbers: tuple[signal.Signals, ...]) -> None:
    site.settings["lease"] = 30.0
    worker = site.worker("a", drain_timeout=60)
    result = site.submit("nap", "one", 30)
    child = int(site.started("one")[2])
    for number in numbers[:-1]:
        kill(worker.pid, number)
        # Two signals of one kind that are both pending are one for the kernel.
        wait_until(lambda: "event=worker.draining" in site.log(worker), what="draining")
    kill(worker.pid, numbers[-1])
    assert worker.wait(5) == 0
    assert not alive(child)
    assert result.state is State.QUEUED


def test_a_second_signal_while_a_task_has_the_main_thread_ends_the_process_under_it(
    site: Site,
) -> None:
    site.settings["lease"] = 30.0
    worker = site.worker("a", pool="solo", concurrency=1, drain_timeout=60)
    result = site.submit("nap", "one", 30)
    site.started("one")
    kill(worker.pid, signal.SIGTERM)
    wait_until(lambda: "event=worker.draining" in site.log(worker), what="draining")
    kill(worker.pid, signal.SIGTERM)
    assert worker.wait(5) == 0
    assert result.state is State.QUEUED


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_task_that_cannot_be_killed_does_not_keep_its_worker(site: Site, pool: str) -> None:
    site.settings["lease"] = 30.0
    concurrency = 1 if pool == "solo" else 2
    worker = site.worker("a", pool=pool, concurrency=concurrency, drain_timeout=0.2)
    result = site.submit("nap", "one", 30)
    site.started("one")
    kill(worker.pid, signal.SIGTERM)
    assert worker.wait(6) == 0
    assert result.state is State.QUEUED


@pytest.mark.parametrize(
    ("pool", "task"),
    [("solo", "beat"), ("threads", "beat"), ("asyncio", "beat"), ("asyncio", "abeat")],
)
def test_a_run_that_cannot_be_stopped_is_over_before_another_worker_runs_its_message(
    site: Site, pool: str, task: str
) -> None:
    site.settings["lease"] = 30.0
    worker = site.worker("a", pool=pool, concurrency=1, drain_timeout=0.1)
    site.submit(task, "one", 30)
    wait_until(lambda: site.notes("beat"), what="the first run")
    site.worker("b", pool="threads", concurrency=1)
    kill(worker.pid, signal.SIGTERM)
    assert worker.wait(8) == 0
    wait_until(
        lambda: len({beat[2] for beat in site.notes("beat")}) == 2, what="the run in another worker"
    )
    beats = {pid: [float(b[3]) for b in site.notes("beat") if b[2] == pid] for pid in _pids(site)}
    first, second = beats.values()
    assert max(first) < min(second)


def _pids(site: Site) -> list[str]:
    return list(dict.fromkeys(beat[2] for beat in site.notes("beat")))


@pytest.mark.parametrize(
    ("pool", "task", "how"),
    [
        ("solo", "deafen", "ignored"),
        ("solo", "deafen", "default"),
        ("solo", "deafen", "no wake-up"),
        ("solo", "adeafen", "loop handler"),
        ("asyncio", "adeafen", "ignored"),
        ("asyncio", "adeafen", "no wake-up"),
        ("asyncio", "adeafen", "loop handler"),
        ("asyncio", "adeafen", "loop handler of another"),
    ],
)
def test_a_task_on_the_main_thread_leaves_its_worker_able_to_hear_signals(
    site: Site, pool: str, task: str, how: str
) -> None:
    worker = site.worker("a", pool=pool, concurrency=1)
    assert site.submit(task, how).get(timeout=5) == how
    kill(worker.pid, signal.SIGTERM)
    assert worker.wait(5) == 0
    assert "event=worker.draining" in site.log(worker)
