"""Tasks that end, crash or starve the process they run in: reliability rows 23 to 26 (I5, I10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskmq import State
from tests.faults.worker.conftest import Site
from tests.support.waiting import wait_until

TASKS = """
import builtins, resource

@app.task
def throw(name):
    raise getattr(builtins, name)("from the task")


@app.task
def crash(number):
    note("start", "crash", os.getpid())
    if number == signal.SIGSEGV:
        ctypes.string_at(0)
    os.kill(os.getpid(), number)


@app.task
def exhaust():
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, hard))
    bytearray(1 << 30)


@app.task
def kill_the_worker():
    note("start", "kill_the_worker", os.getpid())
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(30)
"""


@pytest.fixture
def deadly(site: Site) -> Site:
    site.add(TASKS)
    return site


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
@pytest.mark.parametrize("pool", ["prefork", "solo"])
def test_an_exit_that_a_task_raises_fails_it_and_its_process_stays(
    deadly: Site, pool: str, name: str
) -> None:
    deadly.worker("a", pool=pool, concurrency=1)
    before = deadly.submit("pid").get(timeout=5)
    failed = deadly.submit("throw", name)
    wait_until(lambda: failed.state is State.FAILED)
    assert deadly.submit("pid").get(timeout=5) == before
    (letter,) = deadly.app.transport.operators.dead_letters()
    assert letter.error == f"{name}: from the task"


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


def test_a_message_that_kills_its_whole_worker_each_time_is_buried_after_as_many_workers(
    deadly: Site,
) -> None:
    deadly.settings.update(max_deliveries=2, lease=0.5)
    poison = deadly.submit("kill_the_worker", priority=9)
    for name in ("a", "b"):
        assert deadly.launch(name).wait(15) == -9
    deadly.worker("c")
    assert deadly.submit("pid").get(timeout=5)
    wait_until(lambda: poison.state is State.DEAD)
    (letter,) = deadly.app.transport.operators.dead_letters()
    assert (letter.reason, letter.deliveries) == ("crash-loop", 2)
    assert len(deadly.notes("start", "kill_the_worker")) == 2


@pytest.mark.parametrize("number", [11, 6, 7], ids=["SIGSEGV", "SIGABRT", "SIGBUS"])
@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_a_crash_names_its_signal_and_its_line_and_leaves_no_core_file(
    deadly: Site, number: int, start_method: str
) -> None:
    deadly.settings["max_deliveries"] = 1
    # As far as the worker itself is concerned, cores are wanted.
    deadly.prepare(
        "import resource; _, hard = resource.getrlimit(resource.RLIMIT_CORE)\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))"
    )
    worker = deadly.worker("a", start_method=start_method)
    poison = deadly.submit("crash", number)
    wait_until(lambda: poison.state is State.DEAD)
    name = {11: "SIGSEGV", 6: "SIGABRT", 7: "SIGBUS"}[number]
    (letter,) = deadly.app.transport.operators.dead_letters()
    assert letter.error.startswith("WorkerLost: pool child")
    assert letter.error.endswith(f"was killed by {name}")
    log = deadly.log(worker)
    assert "Fatal Python error" in log
    assert 'jobs.py", line' in log
    assert "in crash" in log
    assert list(deadly.folder.glob("core*")) == []


def test_the_trace_of_a_crash_is_in_the_log_file_where_there_is_one(deadly: Site) -> None:
    deadly.settings["max_deliveries"] = 1
    log = Path(deadly.folder / "worker.log")
    deadly.processes.taskmq(
        *("-A", "jobs", "worker", "-c", "1", "-f", str(log)),
        env={"SETTINGS": '{"max_deliveries": 1}'},
    )
    poison = deadly.submit("crash", 11)
    wait_until(lambda: poison.state is State.DEAD)
    assert "Fatal Python error: Segmentation fault" in log.read_text()
    assert "in crash" in log.read_text()


def test_a_task_that_runs_out_of_memory_fails_and_its_process_is_replaced(deadly: Site) -> None:
    deadly.worker("a", concurrency=1)
    before = deadly.submit("pid").get(timeout=5)
    assert deadly.submit("pid").get(timeout=5) == before
    failed = deadly.submit("exhaust")
    wait_until(lambda: failed.state is State.FAILED)
    assert deadly.submit("pid").get(timeout=5) != before
    (letter,) = deadly.app.transport.operators.dead_letters()
    assert letter.error.startswith("MemoryError")
