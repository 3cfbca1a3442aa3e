"""The same small project for TaskMQ (SQLite), Celery (Redis), and Huey (SQLite, Redis).

All store results and are otherwise at their defaults; what a row changes stands in its configuration. Huey
stores a None only when told (`store_none`), so it is told: the others store it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from tests.benchmarks.tree import stop

# `stamp` says when it started on the clock that all processes of a machine share. `nap` and `probe` write
# it to a file, where what is measured must not wait for results.
TASKS = """
import os, time

def said(what):
    with open({log!r}, "ab", buffering=0) as out:
        out.write(f"{{what}} {{time.monotonic()}}\\n".encode())

@app.task()
def noop():
    return None

@app.task()
def stamp():
    return time.monotonic()

@app.task()
def nap(seconds):
    said("nap")
    time.sleep(seconds)

@app.task()
def probe(number):
    said(f"probe-{{number}}")
"""

TASKMQ = """
from taskmq import App
app = App(broker_url="sqlite:///{folder}/bench.db{query}")
"""

CELERY = """
from celery import Celery
app = Celery("bench", broker="{redis}", backend="{redis}")
if {priorities}:
    # Ten lists in place of one, the most urgent first: Celery's own way to have priorities on Redis.
    app.conf.broker_transport_options = {{
        "queue_order_strategy": "priority", "priority_steps": list(range(10)),
    }}
"""

HUEY_SQLITE = """
from huey import SqliteHuey
app = SqliteHuey("bench", filename="{folder}/bench.db", store_none=True)
"""

HUEY_NO_FSYNC = HUEY_SQLITE.replace("store_none=True", "store_none=True, fsync=False")

HUEY_REDIS = """
from huey import PriorityRedisHuey, RedisHuey
app = (PriorityRedisHuey if {priorities} else RedisHuey)("bench", url="{redis}", store_none=True)
"""

_HUEY_POOLS = {"prefork": "process", "threads": "thread", "solo": "thread"}


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One system under measurement. `urgent` and `normal` are priorities in its own scale."""

    name: str
    title: str
    head: str
    needs: tuple[str, ...]
    urgent: int
    normal: int
    # What can be asked of it beyond no-ops: "full" durability, "prefetch".
    can: frozenset[str] = frozenset()
    # One that takes milliseconds for each of them is given fewer tasks: its rate is the same.
    share: float = 1.0

    @property
    def redis(self) -> bool:
        return "redis" in self.needs

    def missing(self) -> tuple[str, ...]:
        """What would have to be installed."""
        return tuple(n for n in self.needs if importlib.util.find_spec(n) is None)

    def version(self) -> str:
        return f"{self.title.partition(' ')[0]} {metadata.version(self.needs[0])}"


PEERS: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            name="taskmq",
            title="TaskMQ",
            head=TASKMQ,
            needs=("taskmq",),
            urgent=9,
            normal=0,
            can=frozenset({"full", "prefetch"}),
        ),
        Peer(
            name="celery",
            title="Celery (Redis)",
            head=CELERY,
            needs=("celery", "redis"),
            urgent=0,
            normal=9,
            can=frozenset({"prefetch"}),
        ),
        Peer(
            name="huey",
            title="Huey (SQLite)",
            head=HUEY_SQLITE,
            needs=("huey",),
            urgent=9,
            normal=0,
            # Its default waits for the disk at each commit.
            can=frozenset({"full"}),
            share=0.2,
        ),
        Peer(
            name="huey-no-fsync",
            title="Huey (SQLite, no fsync)",
            head=HUEY_NO_FSYNC,
            needs=("huey",),
            urgent=9,
            normal=0,
        ),
        Peer(
            name="huey-redis",
            title="Huey (Redis)",
            head=HUEY_REDIS,
            needs=("huey", "redis"),
            urgent=9,
            normal=0,
        ),
    )
}


@dataclass
class Project:
    """A peer's project in a folder of its own, imported here for the producer."""

    peer: Peer
    folder: Path
    redis: str = ""
    quick: bool = False
    module: Any = field(init=False, default=None)

    def open(self, *, full: bool = False, priorities: bool = False) -> Project:
        """Write the project and import it in the place of one that was open before."""
        head = self.peer.head.format(
            folder=self.folder,
            redis=self.redis,
            priorities=priorities,
            query="?durability=full" if full else "",
        )
        text = head + TASKS.format(log=str(self.log))
        path = self.folder / "bench_project.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("bench_project", path)
        assert spec is not None
        assert spec.loader is not None
        self.module = sys.modules["bench_project"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        return self

    @property
    def log(self) -> Path:
        """What `nap` and `probe` have said."""
        return self.folder / "said.log"

    # -- producer ---------------------------------------------------------------------------------

    def delay(self, task: str) -> Callable[..., Any]:
        """The call a user writes to submit."""
        found = getattr(self.module, task)
        return found if self._huey else found.delay  # type: ignore[no-any-return]

    def submit(self, task: str, *args: object, priority: int) -> Any:
        found = getattr(self.module, task)
        if self._huey:
            return found(*args, priority=priority)
        return found.apply_async(args, priority=priority)

    def get(self, handle: Any, timeout: float = 120.0) -> Any:
        """The result, in the way the peer waits for one."""
        if self._huey:
            return handle.get(blocking=True, timeout=timeout)
        return handle.get(timeout=timeout)

    # -- worker -----------------------------------------------------------------------------------

    def command(self, pool: str, slots: int, prefetch: int | None = None) -> Sequence[str]:
        """The worker's command line; `prefetch` is what it may hold in all."""
        if self._huey:
            kind = _HUEY_POOLS[pool]
            consumer = ["-m", "huey.bin.huey_consumer", "bench_project.app"]
            return [sys.executable, *consumer, "-w", str(slots), "-k", kind]
        command = [sys.executable, "-m", self.peer.needs[0], "-A", "bench_project", "worker"]
        command += ["-P", pool, "-c", str(slots)]
        if prefetch is not None and self.peer.name == "taskmq":
            command += ["--prefetch", str(prefetch)]
        elif prefetch is not None:
            command += ["--prefetch-multiplier", str(prefetch // slots)]
        return command

    @contextmanager
    def worker(self, pool: str = "prefork", slots: int = 2, prefetch: int | None = None) -> Any:
        """A real worker process; its whole tree is gone at the end of the block."""
        with (self.folder / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                self.command(pool, slots, prefetch),
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), *sys.path])},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            stop(process)

    @property
    def _huey(self) -> bool:
        return self.peer.needs[0] == "huey"


def installed() -> list[Peer]:
    """The peers that can be run here; whether their server answers is another question."""
    return [peer for peer in PEERS.values() if not peer.missing()]
