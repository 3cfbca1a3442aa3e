"""A small project on SQLite and one real prefork worker over it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taskmq import App, Result
from tests.support.processes import Processes, processes
from tests.support.waiting import wait_until

PROJECT = """
import os, threading
from taskmq import App

app = App(broker_url="sqlite:///{folder}/q.db", max_body={max_body}, max_deliveries=2)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")
    __repr__ = __str__


class Unpicklable(Exception):
    def __init__(self, name, *, lock):
        super().__init__(name, lock)


@app.task
def echo(*args):
    return list(args)


@app.task
def pids():
    return [os.getppid(), os.getpid()]


@app.task
def fail(secret):
    raise ValueError("it failed")


@app.task
def size(text):
    status = open("/proc/self/status").read()
    return [len(text), int(status.split("VmHWM:")[1].split()[0]) // 1024]


@app.task
def odd(how):
    loop = []
    loop.append(loop)
    results = dict(object=object(), loop=loop, nan=float("nan"), surrogate=chr(0xD800), set={{1}},
                   deep=eval("[" * 90 + "]" * 90), large="x" * 2_000_000)
    if how in results:
        return results[how]
    raise dict(mute=Mute("x"), unpicklable=Unpicklable("u", lock=threading.Lock()),
               large_error=ValueError("x" * 10_000_000), surrogate_error=ValueError(chr(0xD800)))[how]
"""


class Site:
    """The project, a producer on the same file, and its worker."""

    def __init__(self, folder: Path, started: Processes, max_body: int) -> None:
        self.folder = folder
        self.processes = started
        (folder / "jobs.py").write_text(PROJECT.format(folder=folder, max_body=max_body))
        self.app = App(broker_url=f"sqlite:///{folder}/q.db", max_body=max_body, max_deliveries=2)
        self.process = self.worker()

    def worker(self) -> subprocess.Popen[str]:
        process = self.processes.taskmq("-A", "jobs", "worker", "-c", "1", name="worker")
        coordination = self.app.transport.coordination
        wait_until(lambda: coordination.workers() or process.poll() is not None, what="the worker")
        assert process.poll() is None, self.processes.log(process)
        return process

    def submit(self, name: str, *args: Any, **options: Any) -> Result[Any]:
        return self.app.submit(f"jobs.{name}", args, **options)

    def log(self) -> str:
        return self.processes.log(self.process)


@pytest.fixture
def max_body() -> int:
    return 1024 * 1024


@pytest.fixture
def site(tmp_path: Path, max_body: int) -> Iterator[Site]:
    with processes(tmp_path) as started:
        site = Site(tmp_path, started, max_body)
        yield site
        site.app.close()
