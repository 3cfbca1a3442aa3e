"""Tasks that spoil their process for whoever comes next: reliability rows 29 and 53 (I10)."""

from __future__ import annotations

import pytest

from taskmq import State
from taskmq.errors import TimeLimitExceeded
from tests.faults.worker.conftest import Site, alive
from tests.support.waiting import wait_until

TASKS = """
import faulthandler, gc, locale, threading

left = []


@app.task
def spoil(how):
    note("start", "spoil", os.getpid())
    if how == "standard descriptors":
        for number in (0, 1, 2):
            os.close(number)
    elif how == "every descriptor":
        os.closerange(0, 4096)
    elif how == "working directory":
        os.mkdir(HERE / "gone")
        os.chdir(HERE / "gone")
        os.rmdir(HERE / "gone")
    elif how == "umask":
        os.umask(0o777)
    elif how == "locale":
        locale.setlocale(locale.LC_ALL, "C")
        os.environ.clear()
    elif how == "handlers":
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV}:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
    elif how == "streams":
        sys.stdin = sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None
    elif how == "thread":
        threading.Thread(target=time.sleep, args=(30,)).start()
    elif how == "process":
        if not os.fork():
            time.sleep(30)
            os._exit(0)
    elif how == "session":
        os.setsid()
    elif how == "collector":
        gc.disable()
        gc.freeze()
    elif how == "tracebacks":
        faulthandler.register(signal.SIGUSR1)
        faulthandler.disable()
    elif how == "descriptors":
        left.extend(os.dup(0) for _ in range(600))
    return os.getpid()


@app.task(bind=True)
def serve(ctx):
    print("served")
    return [os.getpid(), ctx.publish(pid).id]


@app.task(soft_time_limit=0.05)
def limited():
    for _ in range(500):
        time.sleep(0.01)


@app.task(bind=True)
def alarmed(ctx, published):
    rings = []
    signal.signal(signal.SIGALRM, lambda *_: rings.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    ids = [ctx.publish(nap, (str(n), 0.002)).id for n in range(published)]
    for n in range(published):
        ctx.progress(n)
        time.sleep(0.002)
    for id in ids:
        app.result(id).get(timeout=10)
    return len(rings)


@app.task
def alarmed_for_ever():
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        time.sleep(0.01)
"""

# What it costs: nothing, or the child.
SPOILT = {
    "working directory": "kept",
    "umask": "kept",
    "locale": "kept",
    "handlers": "kept",
    "streams": "kept",
    "thread": "kept",
    "process": "kept",
    "session": "kept",
    "collector": "kept",
    "tracebacks": "kept",
    "standard descriptors": "replaced",
    "descriptors": "replaced",
}


@pytest.fixture
def hostile(site: Site) -> Site:
    site.add(TASKS)
    site.settings["lease"] = 30.0
    return site


@pytest.mark.parametrize("how", SPOILT)
def test_what_a_task_does_to_its_process_neither_stops_the_next_ones_nor_the_worker(
    hostile: Site, how: str
) -> None:
    worker = hostile.worker("a", concurrency=1)
    spoilt = hostile.submit("spoil", how).get(timeout=5)
    pid, published = hostile.submit("serve").get(timeout=5)
    assert hostile.app.result(published).get(timeout=5) == pid
    assert (pid == spoilt) == (SPOILT[how] == "kept")
    late = hostile.submit("limited")
    wait_until(lambda: late.state is State.FAILED, what="the soft limit of a later task")
    worker.terminate()
    assert worker.wait(5) == 0
    assert not alive(pid)


def test_a_task_that_closes_every_descriptor_loses_its_process_and_nothing_else(
    hostile: Site,
) -> None:
    hostile.settings["max_deliveries"] = 2
    worker = hostile.worker("a", concurrency=1)
    poison = hostile.submit("spoil", "every descriptor", priority=9)
    good = [hostile.submit("serve") for _ in range(5)]
    for result in good:
        assert result.get(timeout=5)
    wait_until(lambda: poison.state is State.DEAD)
    assert len(hostile.notes("start", "spoil")) == 2
    worker.terminate()
    assert worker.wait(5) == 0


def test_a_busy_alarm_of_a_task_interrupts_nothing_of_its_run(hostile: Site) -> None:
    worker = hostile.worker("a", concurrency=2)
    alarmed = hostile.submit("alarmed", 30)
    assert alarmed.get(timeout=10) >= 30
    assert len(hostile.notes("end")) == 30
    assert len(hostile.notes("start")) == 30
    # What it leaves ringing does not hit the next ones.
    assert all(hostile.submit("nap", "after", 0.05).get(timeout=5) for _ in range(4))
    assert "event=child.lost" not in hostile.log(worker)


def test_a_task_with_an_alarm_of_its_own_still_has_its_limits(hostile: Site) -> None:
    worker = hostile.worker("a", concurrency=1)
    soft = hostile.submit("alarmed_for_ever", soft_time_limit=0.1)
    wait_until(lambda: soft.state is State.FAILED)
    (letter,) = hostile.app.transport.operators.dead_letters()
    assert letter.error.startswith("SoftTimeLimitExceeded")
    hard = hostile.submit("alarmed_for_ever", time_limit=0.1)
    with pytest.raises(TimeLimitExceeded):
        hard.get(timeout=5)
    worker.terminate()
    assert worker.wait(5) == 0
