"""Starting and stopping, again and again and in odd places: reliability row 51 (I9)."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest

from taskmq import App
from taskmq.worker.options import WorkerOptions
from taskmq.worker.worker import Worker
from tests.faults.worker.conftest import Site
from tests.support.waiting import wait_until

THREADS = 10
TIMES = 50

# Everything that warns is an error, and what cannot be raised is printed.
STRICT = ("-X", "dev", "-W", "error")

DAEMON = """
import threading
import jobs
from taskmq.worker.options import WorkerOptions
from taskmq.worker.worker import Worker

worker = Worker(jobs.app, WorkerOptions(pool="{pool}", concurrency=2))
thread = threading.Thread(target=worker.run, daemon=True)
thread.start()
result = jobs.app.submit("jobs.nap", ["one", 0])
assert result.get(timeout=20)
if {stop}:
    worker.stop()
    thread.join(20)
    assert not thread.is_alive()
jobs.note("main thread ends")
"""

SPAWNS = """
import multiprocessing
import jobs

def work():
    jobs.note("spawned", jobs.app.submit("jobs.pid").state.value)

if __name__ == "__main__":
    jobs.app.submit("jobs.pid")
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join(20)
    raise SystemExit(process.exitcode)
"""


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_workers_start_and_stop_in_many_threads_at_once(tmp_path: Path) -> None:
    app = App(broker_url=f"sqlite:///{tmp_path / 'q.db'}", poll_interval=0.05)
    done: list[int] = []
    task = app.task(name="jobs.one")(lambda n: done.append(n))
    errors: list[BaseException] = []

    def live_often(thread: int) -> None:
        try:
            for n in range(TIMES):
                worker = Worker(
                    app, WorkerOptions(pool="threads", concurrency=2, name=f"w{thread}")
                )
                if n % 2:
                    task.delay(n)
                    # Before, while or after it starts.
                    threading.Timer(0.001 * thread, worker.stop).start()
                else:
                    worker.stop()
                assert worker.run() == 0
        except BaseException as exc:
            errors.append(exc)

    before, running = descriptors(), threading.active_count()
    threads = [threading.Thread(target=live_often, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert errors == []
    assert not any(thread.is_alive() for thread in threads)
    wait_until(lambda: threading.active_count() == running, what="the end of all threads")
    # What those that were stopped handed back runs in one more.
    last = Worker(app, WorkerOptions(pool="threads", concurrency=2))

    def stop_last() -> None:
        wait_until(lambda: len(done) == THREADS * (TIMES // 2), what="the end of all tasks")
        last.stop()

    stopper = threading.Thread(target=stop_last)
    stopper.start()
    assert last.run() == 0
    stopper.join()
    assert app.transport.operators.depth() == []
    assert app.transport.coordination.workers() == []
    app.close()
    wait_until(lambda: descriptors() <= before, what="the descriptors of all of them")


@pytest.mark.parametrize("pool", ["threads", "prefork"])
@pytest.mark.parametrize("stop", [True, False], ids=["stopped", "left running"])
def test_a_program_ends_though_a_daemon_thread_of_it_runs_a_worker(
    site: Site, pool: str, stop: bool
) -> None:
    (site.folder / "program.py").write_text(DAEMON.format(pool=pool, stop=stop))
    program = site.processes.python(*STRICT, "program.py", env={"SETTINGS": "{}"})
    wait_until(lambda: program.poll() is not None, 30, what="its end")
    assert (program.returncode, site.log(program)) == (0, "")
    assert site.notes("main", "thread", "ends")


def test_a_program_that_leaves_its_app_open_ends_cleanly(site: Site) -> None:
    (site.folder / "program.py").write_text(
        "import jobs\nassert jobs.app.submit('jobs.pid').state.value == 'queued'\n"
    )
    program = site.processes.python(*STRICT, "program.py", env={"SETTINGS": "{}"})
    wait_until(lambda: program.poll() is not None, what="its end")
    assert (program.returncode, site.log(program)) == (0, "")


def test_a_spawned_process_imports_the_project_and_submits(site: Site) -> None:
    (site.folder / "program.py").write_text(SPAWNS)
    program = site.processes.python(*STRICT, "program.py", env={"SETTINGS": "{}"})
    wait_until(lambda: program.poll() is not None, 30, what="its end")
    assert (program.returncode, site.log(program)) == (0, "")
    assert site.notes("spawned") == [["spawned", "queued"]]
    assert sum(row.ready for row in site.app.transport.operators.depth()) == 2


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo", "asyncio"])
def test_a_worker_that_is_stopped_leaves_without_a_warning(site: Site, pool: str) -> None:
    site.environment = {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"}
    worker = site.worker("a", pool=pool, concurrency=1)
    assert site.submit("nap", "one", 0).get(timeout=10) == "a"
    worker.terminate()
    assert worker.wait(5) == 0
    log = site.log(worker)
    assert "Warning" not in log
    assert "Traceback" not in log
    assert "event=worker.stopped" in log
