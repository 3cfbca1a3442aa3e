"""Workers that stand still past their leases, and then go on: reliability rows 8 and 20 (I2, I3, I4)."""

from __future__ import annotations

import signal
import time

import pytest

from tests.faults.worker.conftest import Site, children, kill
from tests.support.waiting import wait_until

TASKS = """
@app.task(bind=True)
def first_waits(ctx, name):
    note("start", name, os.getpid(), ctx.worker, ctx.deliveries)
    while ctx.deliveries == 1 and not (HERE / "go").exists():
        time.sleep(0.01)
    note("end", name, os.getpid(), ctx.worker)
    return ctx.worker
"""


def pause(site: Site, worker) -> list[int]:
    """Stop a worker and its children; the stopped processes."""
    site.stop(worker)
    below = children(worker.pid)
    for child in below:
        kill(child, signal.SIGSTOP)
    return [*below, worker.pid]


def resume(pids: list[int]) -> None:
    for pid in pids:
        kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo", "asyncio"])
def test_a_run_that_was_paused_past_its_lease_ends_late_and_changes_nothing(
    site: Site, pool: str
) -> None:
    site.add(TASKS)
    first = site.worker("a", pool=pool, concurrency=1)
    result = site.submit("first_waits", "one")
    site.started("one")
    stopped = pause(site, first)
    second = site.worker("b")
    assert result.get(timeout=6) == "b"
    resume(stopped)
    wait_until(lambda: "event=lease_lost" in site.log(first), what="lease_lost")
    site.go()
    wait_until(lambda: len(site.notes("end", "one")) == 2, what="the late end")
    second.terminate()
    assert second.wait(5) == 0
    # What comes after it went through the first worker, so its late end did too.
    assert site.submit("nap", "next", 0).get(timeout=5) == "a"
    assert result.get(timeout=0) == "b"
    assert [note[3] for note in site.notes("start", "one")] == ["a", "b"]
    assert site.app.transport.operators.dead_letters() == []


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


def test_when_everything_is_paused_past_the_leases_each_message_runs_at_most_once_more(
    site: Site,
) -> None:
    workers = [site.worker("a"), site.worker("b")]
    running = [site.submit("hold", f"running-{n}") for n in range(4)]
    for n in range(4):
        site.started(f"running-{n}")
    queued = [site.submit("nap", f"queued-{n}", 0) for n in range(8)]

    stopped = [pid for worker in workers for pid in pause(site, worker)]
    since = time.monotonic()
    wait_until(
        lambda: time.monotonic() > since + 2.5 * site.settings["lease"], what="the leases' end"
    )
    resume(stopped)
    site.go()

    for result in running + queued:
        result.get(timeout=10)
    starts = [len(site.notes("start", f"running-{n}")) for n in range(4)]
    assert max(starts) <= 2
    assert [len(site.notes("start", f"queued-{n}")) for n in range(8)] == [1] * 8
    for worker in workers:
        worker.terminate()
        assert worker.wait(5) == 0
    assert len(site.notes("start")) == sum(starts) + 8
    assert site.app.transport.operators.depth() == []
    assert site.app.transport.operators.dead_letters() == []
