"""A worker in the test's own process, on a virtual clock: no sleeping, no thread, no process.

    app = taskmq.testing.app()

    @app.task
    def add(a, b): return a + b

    with taskmq.testing.worker(app) as w:
        result = add.delay(1, 2)
        w.run_until_idle()
        assert result.get(timeout=0) == 3

It is the real coordinator with a pool that runs tasks where they are polled; so priorities, retries,
limits, yields and workflows behave as in production. Time moves only in `advance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from taskmq.app import App
from taskmq.clock import FakeClock
from taskmq.config import Config
from taskmq.errors import ConfigError
from taskmq.pools.base import Pool
from taskmq.pools.inline import InlinePool
from taskmq.worker.coordinator import Coordinator
from taskmq.worker.options import WorkerOptions
from taskmq.worker.rules import resolve

# A task that submits itself without a delay would otherwise never let the worker come to rest.
_MOST_STEPS = 100_000


def app(config: Config | None = None, *, seed: int = 0, **settings: Any) -> App:
    """An `App` in memory with a `FakeClock` and a seeded `Random`: every run is the same.

    Settings as `App` takes them; `broker_url` may be given to test on another transport.
    """
    if config is None or config.broker_url == Config().broker_url:
        settings.setdefault("broker_url", "memory://")
    return App(config, clock=FakeClock(), random=Random(seed), **settings)


@contextmanager
def isolated(app: App, *, seed: int = 0) -> Iterator[App]:
    """Inside the block an application's own app lives in memory, on a `FakeClock`.

        with taskmq.testing.isolated(shop.app), taskmq.testing.worker(shop.app) as w:
            shop.send_email.delay("a@b.com")
            w.run_until_idle()

    Nothing is read from or written to its real broker; settings other than where messages and results
    are stay in force. Afterwards the app is as it was.
    """
    with app.elsewhere(broker_url="memory://", clock=FakeClock(), random=Random(seed)):
        yield app


class VirtualWorker:
    """Made by `taskmq.testing.worker`."""

    def __init__(self, app: App, coordinator: Coordinator) -> None:
        self.app = app
        self.coordinator = coordinator

    @property
    def clock(self) -> FakeClock:
        """The app's virtual clock."""
        clock = self.app.clock
        assert isinstance(clock, FakeClock)
        return clock

    def step(self) -> bool:
        """One turn of the worker's loop; whether anything happened."""
        return self.coordinator.step()

    def run_until_idle(self) -> int:
        """Run everything that is due now, what it submits included; the number of turns it took.

        Raises `AssertionError` when that has no end.
        """
        for turns in range(_MOST_STEPS):
            happened = self.step()
            if not (happened or self.coordinator.again or self.coordinator.held.running):
                return turns
        raise AssertionError(
            f"the worker was not idle after {_MOST_STEPS} turns; does a task submit itself at once?"
        )

    def advance(self, seconds: float) -> None:
        """Let time pass, running what falls due at its time: retries, ETAs, rate limits, expiries."""
        target = self.clock.now() + seconds
        self.run_until_idle()
        while (due := self._next_due()) is not None and due <= target:
            self.clock.advance(max(0.0, due - self.clock.now()))
            if self.run_until_idle() == 0 and self._next_due() == due:
                # It is due and cannot start (its queue is paused, say): no reason to stand still.
                break
        self.clock.advance(max(0.0, target - self.clock.now()))
        self.run_until_idle()

    def _next_due(self) -> float | None:
        return self.coordinator.transport.next_due(self.coordinator.rules.queues)


@contextmanager
def worker(
    app: App,
    *,
    queues: Sequence[str] = (),
    concurrency: int | None = None,
    prefetch: int | None = None,
    pool: Pool | None = None,
    name: str = "test-worker",
    events: bool | None = None,
) -> Iterator[VirtualWorker]:
    """A worker of `app` that runs only when told to.

    `app` is one of `taskmq.testing.app`, or any other built with a `FakeClock`; `ConfigError`
    otherwise. One slot unless `concurrency` or the settings say more, so that tasks run in the order of
    priority. `pool` takes the place of the inline one, for tests of what happens while tasks run.
    """
    if not isinstance(app.clock, FakeClock):
        raise ConfigError(
            "taskmq.testing.worker: the app needs a virtual clock: use it inside "
            f"taskmq.testing.isolated(app), or one made by taskmq.testing.app(); got {app.clock!r}"
        )
    options = WorkerOptions(
        pool="threads",
        queues=queues,
        concurrency=concurrency or app.config.concurrency or 1,
        prefetch=prefetch,
        name=name,
        events=events,
    )
    rules = resolve(app.config, options, name)
    coordinator = Coordinator(app, pool or InlinePool(app, rules.slots), rules)
    coordinator.open()
    try:
        yield VirtualWorker(app, coordinator)
    finally:
        coordinator.close()
