"""One App in several threads and in forked processes: reliability rows 21 and 22 (I1, I12)."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

from taskmq import App
from tests.faults.worker.conftest import Site

THREADS = 8
EACH = 50

# As a web server does that loads the project, uses it, and then forks: each process goes on submitting
# and waits for one result of its own.
PRELOADED = f"""
import os, threading
import jobs

jobs.app.submit("jobs.pid").get(timeout=20)
# The parent goes on beside, also while it forks.
def submit():
    for n in range({EACH}):
        jobs.note("accepted", jobs.app.submit("jobs.nap", ["parent", 0]).id)
beside = threading.Thread(target=submit)
beside.start()

children = []
for name in ("a", "b", "c"):
    pid = os.fork()
    if not pid:
        code = 1
        try:
            for n in range({EACH}):
                result = jobs.app.submit("jobs.nap", [name, 0])
                jobs.note("accepted", result.id)
            result.get(timeout=20)
            code = 0
        finally:
            os._exit(code)
    children.append(pid)
beside.join()
jobs.app.submit("jobs.pid").get(timeout=20)
jobs.note("codes", *[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children])
"""


def integrity(path: Path) -> list[tuple[str]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()


def test_processes_forked_from_one_that_uses_its_app_submit_and_wait_like_it(site: Site) -> None:
    (site.folder / "server.py").write_text(PRELOADED)
    site.worker("a")
    server = site.processes.python("server.py", env={"SETTINGS": "{}"}, name="server")
    assert server.wait(30) == 0, site.log(server)
    assert site.notes("codes") == [["codes", "0", "0", "0"]]
    accepted = [note[1] for note in site.notes("accepted")]
    assert len(set(accepted)) == 4 * EACH
    for task_id in accepted:
        site.app.result(task_id).get(timeout=10)
    for name in ("parent", "a", "b", "c"):
        assert len(site.notes("start", name)) == EACH
    assert integrity(site.folder / "q.db") == [("ok",)]


def test_threads_submit_and_read_through_one_app(tmp_path: Path) -> None:
    app = App(broker_url=f"sqlite:///{tmp_path / 'q.db'}")
    work = app.task(name="jobs.work")(lambda *args: None)
    ready = threading.Barrier(THREADS)
    states: list[str] = []
    errors: list[BaseException] = []

    def use(thread: int) -> None:
        try:
            ready.wait(10)
            for n in range(EACH):
                states.append(work.delay(thread, n).state.value)
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=use, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert states == ["queued"] * THREADS * EACH
    assert sum(row.ready for row in app.transport.operators.depth()) == THREADS * EACH
    app.close()
    assert integrity(tmp_path / "q.db") == [("ok",)]
