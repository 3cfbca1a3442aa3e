"""A small project on SQLite and real worker processes over it, each reaped at the end of its test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from taskmq import App, Result
from taskmq.errors import TransportUnavailable
from tests.support.processes import Processes
from tests.support.waiting import wait_until

PROJECT = '''
import asyncio, ctypes, json, os, pathlib, signal, sys, time
from taskmq import App

HERE = pathlib.Path(__file__).parent
app = App(broker_url=f"sqlite:///{HERE / 'q.db'}", **json.loads(os.environ["SETTINGS"]))


def note(*words):
    """One line, written at once: it survives a kill -9."""
    line = " ".join(map(str, words)) + chr(10)
    fd = os.open(HERE / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, line.encode())
    os.close(fd)


@app.task(bind=True)
def nap(ctx, name, seconds, again=None):
    note("start", name, os.getpid(), ctx.worker, ctx.deliveries)
    time.sleep(seconds if again is None or ctx.deliveries == 1 else again)
    note("end", name, os.getpid(), ctx.worker, ctx.deliveries)
    return ctx.worker


@app.task
def die(how):
    note("start", "die", os.getpid())
    if how == "segfault":
        ctypes.string_at(0)
    elif how == "os._exit":
        os._exit(0)
    elif how == "sys.exit":
        sys.exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task
def pid():
    return os.getpid()


@app.task
def hold(name):
    """Runs until the test says `go`."""
    note("start", name, os.getpid())
    while not (HERE / "go").exists():
        time.sleep(0.01)
    note("end", name, os.getpid())
    return os.getpid()


@app.task(concurrency_key="one at a time")
def beat(name, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        note("beat", name, os.getpid(), time.monotonic())
        time.sleep(0.01)


@app.task
async def abeat(name, seconds):
    try:
        beat(name, 0.1)
        await asyncio.sleep(seconds)
    finally:
        beat(name, 0.5)


@app.task
def deafen(how):
    if how == "ignored":
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    elif how == "default":
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    elif how == "no wake-up":
        signal.set_wakeup_fd(-1)
    return how


@app.task
async def adeafen(how):
    if how == "loop handler":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
    elif how == "loop handler of another":
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, print)
    return deafen(how)
'''

RUN = """
import json, logging, sys

class Format(logging.Formatter):
    def format(self, record):
        return f"{record.levelname} {record.getMessage()} event={getattr(record, 'event', '')}"

handler = logging.StreamHandler()
handler.setFormatter(Format())
logging.basicConfig(level=logging.INFO, handlers=[handler])

PREPARED
import jobs
from taskmq.worker.options import WorkerOptions
from taskmq.worker.worker import Worker
sys.exit(Worker(jobs.app, WorkerOptions(app_spec="jobs:app", **json.loads(sys.argv[1]))).run())
"""


class Site:
    """The project, its workers and what their tasks noted."""

    def __init__(self, folder: Path, started: Processes) -> None:
        self.folder = folder
        self.processes = started
        self.settings: dict[str, Any] = {"lease": 1.0}
        self._app: App | None = None
        self.environment: dict[str, str] = {}
        (folder / "jobs.py").write_text(PROJECT)
        self.prepare("")

    def add(self, tasks: str) -> None:
        """More tasks for the workers that are started from now on."""
        with (self.folder / "jobs.py").open("a") as file:
            file.write(tasks)

    def prepare(self, lines: str) -> None:
        """What the processes of workers do before they import the project."""
        (self.folder / "run_worker.py").write_text(RUN.replace("PREPARED", lines))

    @property
    def app(self) -> App:
        """A producer on the same file; it knows the tasks by name only."""
        if self._app is None:
            self._app = App(broker_url=f"sqlite:///{self.folder / 'q.db'}", **self.settings)
        return self._app

    def submit(self, name: str, *args: Any, **options: Any) -> Result[Any]:
        return self.app.submit(f"jobs.{name}", args, **options)

    def launch(self, name: str, **options: Any) -> subprocess.Popen[str]:
        """Start a worker of two children and wait for nothing."""
        options = {"name": name, "concurrency": 2, **options}
        return self.processes.python(
            "run_worker.py",
            json.dumps(options),
            env={"SETTINGS": json.dumps(self.settings), **self.environment},
            name=name,
        )

    def worker(self, name: str, **options: Any) -> subprocess.Popen[str]:
        """Start a worker of two children and wait until it has said that it lives."""
        process = self.launch(name, **options)
        coordination = self.app.transport.coordination
        wait_until(
            lambda: any(w.name == name for w in coordination.workers()) or process.poll(),
            what=f"worker {name}",
        )
        assert process.poll() is None, self.processes.log(process)
        return process

    def stop(self, process: subprocess.Popen[str]) -> None:
        """SIGSTOP a worker, but not inside a transaction: that would stop every writer with it."""
        url = f"sqlite:///{self.folder / 'q.db'}?busy_timeout=0.3"
        with App(broker_url=url, **self.settings) as probe:

            def outside() -> bool:
                process.send_signal(signal.SIGSTOP)
                try:
                    probe.transport.coordination.drop_duties("nobody")
                except TransportUnavailable:
                    process.send_signal(signal.SIGCONT)
                    return False
                return True

            probe.transport.coordination.drop_duties("nobody")
            wait_until(outside, what="a stop between two transactions")

    def go(self) -> None:
        """Let every `hold` end."""
        (self.folder / "go").touch()

    def log(self, process: subprocess.Popen[str]) -> str:
        return self.processes.log(process)

    def notes(self, *words: str) -> list[list[str]]:
        """The noted lines that begin with these words."""
        path = self.folder / "notes"
        lines = path.read_text().splitlines() if path.exists() else []
        split = [line.split() for line in lines]
        return [line for line in split if line[: len(words)] == list(words)]

    def started(self, name: str, times: int = 1) -> list[str]:
        """The note of the n-th start of a nap, once it is there."""
        wait_until(lambda: len(self.notes("start", name)) >= times, what=f"start {times} of {name}")
        return self.notes("start", name)[times - 1]

    def close(self) -> None:
        if self._app is not None:
            self._app.close()


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody reaps does not (reliability fact 14)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def children(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    found = [int(c) for t in threads for c in (t / "children").read_text().split()]
    return [child for child in found if alive(child)]


def kill(pid: int | str, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(int(pid), number)
