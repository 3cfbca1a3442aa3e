"""Pool children that cannot start: reliability row 27 (I10). The pauses themselves are in the unit tests."""

from __future__ import annotations

import pytest

from taskmq import State
from taskmq.pools.starts import BOOT_ATTEMPTS
from taskmq.worker.exits import EXIT_NO_CHILDREN
from tests.faults.worker.conftest import Site, children, kill
from tests.support.waiting import wait_until

# A spawned child imports the project, so it fails as at a missing library; a forked one at its first hook.
BROKEN = """
def boot():
    if os.getpid() != int(os.environ["PARENT"]) and (HERE / "broken").exists():
        note("boot", os.getpid())
        import library_that_is_gone

def hook(app):
    try:
        boot()
    except ImportError:
        os._exit(70)

app.hooks.child_init.connect(hook)
if {spawned}:
    boot()
"""

PAUSES = """
import os
os.environ["PARENT"] = str(os.getpid())
import taskmq.pools.starts as starts
starts.FIRST_BACKOFF, starts.LAST_BACKOFF = 0.05, {longest}
"""


@pytest.fixture(params=["fork", "spawn"])
def method(site: Site, request: pytest.FixtureRequest) -> str:
    """A start method; no child starts while there is a file `broken`."""
    site.add(BROKEN.format(spawned=request.param == "spawn"))
    site.prepare(PAUSES.format(longest=0.1))
    return str(request.param)


def test_a_worker_whose_children_never_start_claims_nothing_and_exits_with_its_own_code(
    site: Site, method: str
) -> None:
    (site.folder / "broken").touch()
    result = site.submit("pid")
    worker = site.launch("a", start_method=method, concurrency=3)
    assert worker.wait(20) == EXIT_NO_CHILDREN
    # All of them once, then one at a time, and none once it has given up.
    assert BOOT_ATTEMPTS <= len(site.notes("boot")) <= 3 + BOOT_ATTEMPTS - 1
    log = site.log(worker)
    assert log.count("event=child.start_failed") == BOOT_ATTEMPTS - 1
    assert "event=pool.broken" in log
    (found,) = site.app.transport.operators.find(result.id)
    assert (result.state, found.deliveries) == (State.QUEUED, 0)


def test_a_worker_that_loses_its_children_for_a_while_waits_for_them_without_claiming(
    site: Site, method: str
) -> None:
    worker = site.worker("a", start_method=method, concurrency=2)
    both = [site.submit("hold", f"one-{n}") for n in range(2)]
    for n in range(2):
        site.started(f"one-{n}")
    site.go()
    for ended in both:
        ended.get(timeout=5)
    (site.folder / "broken").touch()
    for child in children(worker.pid):
        kill(child)
    wait_until(lambda: site.log(worker).count("event=child.lost") == 2, what="both lost")
    failed = BOOT_ATTEMPTS
    result = site.submit("pid")
    # As often as would end it at its first start.
    wait_until(
        lambda: site.log(worker).count("event=child.start_failed") >= failed, what="failing starts"
    )
    (found,) = site.app.transport.operators.find(result.id)
    assert (result.state, found.deliveries) == (State.QUEUED, 0)
    boots = len(site.notes("boot"))
    assert boots <= site.log(worker).count("event=child.start_failed") + 2
    (site.folder / "broken").unlink()
    assert result.get(timeout=5)
    wait_until(lambda: len(children(worker.pid)) == 2, what="both children")
    worker.terminate()
    assert worker.wait(5) == 0


def test_a_worker_whose_children_do_not_start_stops_when_told(site: Site, method: str) -> None:
    (site.folder / "broken").touch()
    site.prepare(PAUSES.format(longest=30).replace("0.05", "30"))
    worker = site.launch("a", start_method=method)
    wait_until(lambda: "event=child.start_failed" in site.log(worker), what="a failed start")
    worker.terminate()
    assert worker.wait(5) == 0
