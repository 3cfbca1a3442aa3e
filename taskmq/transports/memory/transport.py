"""The memory transport: the whole seam in one process, for tests, `solo` scripts and trying things out.

Nothing survives the process. Any number of threads may share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from taskmq.clock import Clock, SystemClock
from taskmq.message import Delivery, Message
from taskmq.policy.aging import Aging
from taskmq.policy.bands import Window
from taskmq.policy.sizes import check_messages
from taskmq.transports.base import (
    ALL_BANDS,
    Capabilities,
    Outcome,
    QueueShare,
    ReserveRequest,
    Settings,
    Started,
    Transport,
    Turn,
)
from taskmq.transports.memory.claim import Claim, peek
from taskmq.transports.memory.coordination import MemoryCoordination
from taskmq.transports.memory.operators import MemoryOperators
from taskmq.transports.memory.results import MemoryResults
from taskmq.transports.memory.settle import settle_apart, yield_back
from taskmq.transports.memory.starting import start_held
from taskmq.transports.memory.store import Store


class MemoryTransport(Transport):
    """Messages in this process. `clock` and `random` are injected so that tests decide both.

    Raises `TooLarge` at submit, and `TransportUnavailable` in a forked child.
    """

    name = "memory"
    capabilities = Capabilities(
        keeps_place=True,
        exact_peek=True,
        atomic_turn=True,
        leases=True,
        shared_limits=True,
        shared_results=True,
        persistent=False,
        processes=False,
    )

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self._store = Store(settings or Settings(), self.clock, random or Random())
        self._operators = MemoryOperators(self._store)
        self._coordination = MemoryCoordination(self._store)
        self._results = MemoryResults(self._store)

    def open(self) -> None:
        """Nothing to connect to."""

    def close(self) -> None:
        """The messages stay as long as the object, so that a shared one may be opened again."""

    def submit(self, messages: Sequence[Message]) -> None:
        check_messages(messages, self._store.settings.max_body)
        with self._store.at() as now:
            for message in messages:
                self._store.insert(message, now)

    def turn(self, outcomes: Sequence[Outcome], request: ReserveRequest | None) -> Turn:
        with self._store.at() as now:
            self._store.waiting.rates.begin_turn()
            lost = tuple(o.delivery for o in outcomes if not settle_apart(self._store, o, now))
            if request is None:
                return Turn(lost=lost)
            claim = Claim(self._store, request, now)
            claim.run()
            return Turn(lost=lost, deliveries=tuple(claim.deliveries), refused=tuple(claim.refused))

    def start(self, deliveries: Sequence[Delivery]) -> Started:
        started: list[Delivery] = []
        refused: list[Delivery] = []
        with self._store.at() as now:
            self._store.waiting.rates.begin_turn()
            for delivery in deliveries:
                running = start_held(self._store, delivery, now)
                if running is None:
                    refused.append(delivery)
                else:
                    started.append(running)
        return Started(tuple(started), tuple(refused))

    def peek_max_priority(
        self,
        queues: Sequence[QueueShare],
        *,
        window: Window = ALL_BANDS,
        aging: Aging | None = None,
    ) -> int | None:
        with self._store.at() as now:
            return peek(self._store, queues, window, aging, now)

    def yield_reservation(self, delivery: Delivery, *, delay: float) -> bool:
        with self._store.at() as now:
            return yield_back(self._store, delivery, delay, now)

    def extend(self, deliveries: Sequence[Delivery], lease: float) -> tuple[Delivery, ...]:
        lost = []
        with self._store.at() as now:
            for delivery in deliveries:
                entry = self._store.held(delivery)
                if entry is None:
                    lost.append(delivery)
                else:
                    entry.lease = lease
                    entry.lease_until = now + lease
        return tuple(lost)

    def wait(self, timeout: float, fds: Sequence[int] = ()) -> None:
        self._store.waker.wait(timeout, fds)

    def next_due(self, queues: Sequence[QueueShare]) -> float | None:
        with self._store.at() as now:
            return self._store.waiting.next_due([q.name for q in queues], now)

    @property
    def operators(self) -> MemoryOperators:
        return self._operators

    @property
    def coordination(self) -> MemoryCoordination:
        return self._coordination

    @property
    def results(self) -> MemoryResults:
        return self._results
