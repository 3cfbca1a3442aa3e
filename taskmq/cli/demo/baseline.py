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
        # Reserved and not started, in the order it was taken.
        self._held: dict[int, Delivery] = {}

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
        for outcome in outcomes:
            self._held.pop(outcome.delivery.seq, None)
        if request is None or not request.slots or not self._held:
            return self._remember(self.inner.turn(outcomes, request))
        settled = self.inner.turn(outcomes, None)
        next_ones = list(self._held.values())[: request.slots]
        began = self.inner.start(next_ones)
        for delivery in next_ones:
            del self._held[delivery.seq]
        # What is held goes before the store's head, however urgent that is; the store is asked for the
        # slots only once nothing is held.
        left = request.slots - len(began.started)
        rest = replace(
            request,
            slots=0 if self._held else left,
            room=request.room + len(next_ones),
            waiting=(),
        )
        more = self._remember(self.inner.turn((), rest))
        return Turn(
            lost=settled.lost,
            deliveries=began.started + more.deliveries,
            refused=began.refused + more.refused,
            more=settled.more or more.more,
        )

    def _remember(self, turn: Turn) -> Turn:
        self._held.update({d.seq: d for d in turn.deliveries if not d.started})
        return turn

    def yield_reservation(self, delivery: Delivery, *, delay: float) -> bool:
        self._held.pop(delivery.seq, None)
        return self.inner.yield_reservation(delivery, delay=delay)

    def extend(self, deliveries: Sequence[Delivery], lease: float) -> tuple[Delivery, ...]:
        lost = self.inner.extend(deliveries, lease)
        for delivery in lost:
            self._held.pop(delivery.seq, None)
        return lost

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
