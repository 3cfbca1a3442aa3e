"""One round of the demo: start workers, submit the bulk work, send requests into it, collect everything."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from taskmq.app import App
from taskmq.cli.demo.app import declare, demo_app
from taskmq.cli.demo.workers import Workers
from taskmq.cli.views.results import failure_of
from taskmq.errors import TaskError
from taskmq.message import Message, ResultRecord
from taskmq.priority import Priority
from taskmq.states import State

# Words that urgent requests look for.
_WORDS = ("import", "raise", "yield", "lambda", "global", "async", "TODO")
# From the least to the most urgent.
_KINDS = ("demo.outline", "demo.count", "demo.find")
# So many requests come in together.
BURST = 6
# How often the round looks at what is done; also bounds how evenly the requests are spread.
_LOOK = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What both rounds do alike. `seed` decides files and words of the requests."""

    sources: Path
    files: Sequence[str]
    requests: int
    workers: int
    prefetch: int
    timeout: float
    seed: int = 7


class Sent(NamedTuple):
    """A submitted task: its message, when it was submitted, and the file it is about."""

    message: Message
    at: float
    file: str


@dataclass(slots=True, kw_only=True)
class Round:
    """What one round brought. `waits` are (priority, seconds), `facts` the bulk results by file."""

    yielding: bool
    submitted: int = 0
    waits: list[tuple[int, float]] = field(default_factory=list)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether every submitted task has succeeded."""
        return not self.failures and len(self.waits) == self.submitted


Watch = Callable[[int, str], None]


def play(plan: Plan, folder: Path, *, yielding: bool, watch: Watch) -> Round:
    """Play a round in `folder`. `watch(done, extra)` is called as bulk tasks get done.

    Raises `TaskError` when a worker ends early or the round takes longer than `plan.timeout` seconds.
    """
    name = "on" if yielding else "off"
    store = folder / f"yielding-{name}.db"
    # The producer needs no wrapper: both rounds submit alike.
    with demo_app(str(store), yielding=True) as app:
        declare(app, plan.sources)
        workers = Workers(folder, store, plan.sources, yielding=yielding)
        with workers.running(app, plan.workers, plan.prefetch):
            return _Director(app, plan, workers, watch, Round(yielding=yielding)).run()


class _Director:
    def __init__(self, app: App, plan: Plan, workers: Workers, watch: Watch, result: Round) -> None:
        self.app = app
        self.plan = plan
        self.workers = workers
        self.watch = watch
        self.result = result
        self.random = Random(plan.seed)
        self.open: dict[str, Sent] = {}
        self.bulk_open: dict[str, Sent] = {}
        self.sent = 0
        self.extra = ""

    def run(self) -> Round:
        began = time.monotonic()
        self._submit(
            [(self.app.message("demo.analyse", (name,)), name) for name in self.plan.files],
            self.bulk_open,
        )
        while self.open or self.bulk_open or self.sent < self.plan.requests:
            done = len(self.plan.files) - len(self.bulk_open)
            # Spread over the work and not over time, so that slow and fast machines see the same.
            if self.sent < self.plan.requests * done // len(self.plan.files):
                self._requests(min(BURST, self.plan.requests - self.sent))
            self.watch(done, self.extra)
            self._collect(self.open)
            self._collect(self.bulk_open)
            self.workers.check()
            if time.monotonic() - began > self.plan.timeout:
                left = len(self.open) + len(self.bulk_open)
                raise TaskError(f"{left} tasks were not done within {self.plan.timeout:g} s")
        self.watch(len(self.plan.files), self.extra)
        self.result.seconds = time.monotonic() - began
        return self.result

    def _requests(self, count: int) -> None:
        """Requests that come in together, the least urgent first: each has some to overtake."""
        calls = []
        for number in range(count):
            name = self.random.choice(self.plan.files)
            kind = _KINDS[number * len(_KINDS) // count]
            arguments = (name, self.random.choice(_WORDS)) if kind == "demo.find" else (name,)
            calls.append((self.app.message(kind, arguments), name))
        self.sent += count
        self._submit(calls, self.open)

    def _submit(self, calls: list[tuple[Message, str]], into: dict[str, Sent]) -> None:
        now = time.time()
        self.app.publish([message for message, _ in calls])
        into.update({m.task_id: Sent(m, now, name) for m, name in calls})
        self.result.submitted += len(calls)

    def _collect(self, waiting: dict[str, Sent]) -> None:
        if not waiting:
            return
        # The first ones end first, near enough: asking for all of them each time would be quadratic.
        ids = list(waiting)[:64]
        for task_id, record in self.app.results.wait(ids, _LOOK / 2).items():
            self._ended(waiting.pop(task_id), record)

    def _ended(self, sent: Sent, record: ResultRecord) -> None:
        if record.state is not State.SUCCEEDED or record.body is None:
            what = failure_of(record) or str(record.state)
            self.result.failures.append(f"{sent.message.task}({sent.file}): {what}")
            return
        value = json.loads(record.body)
        waited = max(0.0, value["started"] - sent.at)
        self.result.waits.append((sent.message.priority, waited))
        if sent.message.task == "demo.analyse":
            self.result.facts[sent.file] = value["facts"]
        elif sent.message.priority == Priority.CRITICAL:
            self.extra = f"urgent waited {waited * 1000:.0f} ms"
