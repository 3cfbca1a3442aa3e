"""The demo's second round: a worker that keeps what it prefetched and runs it in the order it came.

That is how queues behave that hand a worker a batch and cannot take it back. Built as a wrapper around the
real transport so that everything else, from the store to the pool, is the same in both rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taskmq.coordination.base import Coordination
from taskmq.message import Delivery, Message
from taskmq.policy.aging import Aging
from taskmq.policy.bands import Window
from taskmq.results.base import ResultStore
from taskmq.transports.base import (
    ALL_BANDS,
    Outcome,
    QueueShare,
    ReserveRequest,
    Started,
    Transport,
    Turn,
)
from taskmq.transports.operators import Operators


class WithoutYielding(Transport):
    """A transport whose worker never sees anything more urgent than what it holds already."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.name = inner.name
        self.capabilities = inner.capabilities
        self.clock = inner.clock

    def peek_max_priority(
        self,
        queues: Sequence[QueueShare],
        *,
        window: Window = ALL_BANDS,
        aging: Aging | None = None,
    ) -> int | None:
        """Nothing: so the worker never yields."""
        return None

    def turn(self, outcomes: Sequence[Outcome], request: ReserveRequest | None) -> Turn:
        """Settle, then start what is held in the order it was taken, and only then look at the store."""
        if request is None or not request.waiting:
            return self.inner.turn(outcomes, request)
        settled = self.inner.turn(outcomes, None)
        # The store is asked for room only, so its head cannot pass what the worker holds.
        held = sorted(request.waiting, key=lambda delivery: delivery.seq)[: request.slots]
        began = self.inner.start(held) if held else Started()
        free = request.slots - len(began.started)
        rest = replace(
            request,
            slots=free if len(held) == len(request.waiting) else 0,
            room=request.room + len(began.started),
            waiting=(),
        )
        more = self.inner.turn((), rest)
        return Turn(
            lost=settled.lost,
            deliveries=began.started + more.deliveries,
            refused=began.refused + more.refused,
            more=settled.more or more.more,
        )

    # Everything else is the inner transport's own.

    def open(self) -> None:
        self.inner.open()

    def close(self) -> None:
        self.inner.close()

    def describe(self) -> str:
        return self.inner.describe()

    def submit(self, messages: Sequence[Message]) -> None:
        self.inner.submit(messages)

    def start(self, deliveries: Sequence[Delivery]) -> Started:
        return self.inner.start(deliveries)

    def yield_reservation(self, delivery: Delivery, *, delay: float) -> bool:
        return self.inner.yield_reservation(delivery, delay=delay)

    def extend(self, deliveries: Sequence[Delivery], lease: float) -> tuple[Delivery, ...]:
        return self.inner.extend(deliveries, lease)

    def wait(self, timeout: float, fds: Sequence[int] = ()) -> None:
        self.inner.wait(timeout, fds)

    def next_due(self, queues: Sequence[QueueShare]) -> float | None:
        return self.inner.next_due(queues)

    @property
    def operators(self) -> Operators:
        return self.inner.operators

    @property
    def coordination(self) -> Coordination:
        return self.inner.coordination

    @property
    def results(self) -> ResultStore:
        return self.inner.results
