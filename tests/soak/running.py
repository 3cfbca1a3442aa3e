"""One soak: a real prefork worker, bounded batches, and a look at it all every so often."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

from taskmq.app import App
from tests.benchmarks.tree import Tree, descriptors, rss
from tests.soak.flatness import Sample
from tests.support.processes import processes
from tests.support.waiting import wait_until

_ROOT = Path(__file__).resolve().parents[2]
_BATCH = 500
# Waiting tasks: enough to keep two children busy, and a database that stays small.
_BACKLOG = 4 * _BATCH


@dataclass(kw_only=True)
class Soak:
    """How many tasks, how many of them to a child, and seconds between two looks."""

    folder: Path
    tasks: int
    per_child: int
    look_every: float
    samples: list[Sample] = field(default_factory=list)
    submitted: int = 0

    @property
    def database(self) -> Path:
        return self.folder / "soak.db"

    def run(self) -> list[Sample]:
        """Submit and look until every task is done; the worker is gone when this returns."""
        url = f"sqlite:///{self.database}"
        with App(broker_url=url) as app, processes(self.folder) as started:
            worker = started.taskmq(
                *("-A", "tests.soak.project", "worker", "-P", "prefork", "-c", "2"),
                *("--max-tasks-per-child", str(self.per_child), "-l", "WARNING"),
                env={"TASKMQ_SOAK_URL": url, "PYTHONPATH": str(_ROOT)},
                name="soak",
            )
            try:
                self._drive(app, worker)
            except AssertionError as exc:
                raise AssertionError(f"{exc}\n{started.log(worker)[-3000:]}") from exc
            assert not app.transport.operators.dead_letters(limit=1), "a no-op became a dead letter"
        return self.samples

    def _drive(self, app: App, worker: subprocess.Popen[str]) -> None:
        looks = self._looks(Tree(worker.pid))

        def at_most(limit: int) -> bool:
            waiting = sum(
                d.ready + d.scheduled + d.reserved + d.running + d.blocked
                for d in app.transport.operators.depth()
            )
            assert worker.poll() is None, f"the worker ended with exit code {worker.returncode}"
            looks.send(self.submitted - waiting)
            return waiting <= limit

        next(looks)
        while self.submitted < self.tasks:
            size = min(_BATCH, self.tasks - self.submitted)
            app.publish([app.message("tests.soak.project.noop") for _ in range(size)])
            self.submitted += size
            wait_until(lambda: at_most(_BACKLOG), 60, every=0.02, what="a shorter backlog")
        wait_until(lambda: at_most(0), 60, every=0.02, what="the end of the backlog")

    def _looks(self, tree: Tree) -> Generator[None, int, None]:
        """Takes how many are done, and looks when it is time to."""
        at = 0.0
        while True:
            done = yield
            now = time.monotonic()
            if now >= at:
                at = now + self.look_every
                self.samples.append(self._look(tree, done))

    def _look(self, tree: Tree, done: int) -> Sample:
        coordinator, *children = tree.pids()
        sizes = {pid: rss(pid) for pid in children}
        own = rss(coordinator)
        return Sample(
            done=done,
            producer=rss(os.getpid()),
            coordinator=own,
            tree=own + sum(sizes.values()),
            descriptors=descriptors(coordinator),
            wal=_size(Path(f"{self.database}-wal")),
            database=_size(self.database),
            children=sizes,
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
