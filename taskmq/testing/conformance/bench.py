"""The bench a transport is tested on: a clock that moves when told to, and short words for the verbs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any, Protocol

import pytest

from taskmq.clock import Clock, FakeClock
from taskmq.message import Delivery, Message, ResultRecord
from taskmq.policy.bands import OPEN, Budget
from taskmq.policy.following import NOTHING, Consequence
from taskmq.states import State
from taskmq.transports.base import (
    Outcome,
    QueueShare,
    ReserveRequest,
    Transport,
    Turn,
    Verb,
)

QUEUE = "q"
LEASE = 30.0
# A transport may cap the work of one turn and say `more`; this many times in a row is no cap.
MOST_TURNS = 200
BODY = b'[[], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]'


class MakeTransport(Protocol):
    """What the `make_transport` fixture gives: a new, empty transport that is not open yet.

    `settings` are fields of `taskmq.transports.base.Settings`.
    """

    def __call__(self, clock: Clock, random: Random, **settings: Any) -> Transport: ...


class Bench:
    """One transport under test. `make` again for another one with other settings."""

    def __init__(self, make_transport: MakeTransport) -> None:
        self._make = make_transport
        self._opened: list[Transport] = []
        self.clock = FakeClock()
        self.transport: Transport
        self.make()

    def make(self, **settings: Any) -> Transport:
        """Go on with a new transport of these settings."""
        self.transport = self._make(self.clock, Random(20), **settings)
        self.transport.open()
        self._opened.append(self.transport)
        return self.transport

    def close(self) -> None:
        for transport in self._opened:
            transport.close()

    def needs(self, *capabilities: str) -> None:
        """Skip the test where the transport says it cannot do this."""
        for name in capabilities:
            if not getattr(self.transport.capabilities, name):
                pytest.skip(f"the transport says that it has no {name}")

    # -- producing --------------------------------------------------------------------------------

    def message(self, name: str, priority: int = 0, queue: str = QUEUE, **fields: Any) -> Message:
        """A message whose ids are `name`."""
        values: dict[str, Any] = {"message_id": name, "task_id": name, "task": "conformance.task"}
        values.update(body=BODY, queue=queue, priority=priority)
        values.update(fields)
        return Message(**values)

    def submit(self, *names: str, **fields: Any) -> list[Message]:
        """Submit one message per name, each in a submit of its own."""
        messages = [self.message(name, **fields) for name in names]
        for message in messages:
            self.transport.submit([message])
        return messages

    # -- consuming --------------------------------------------------------------------------------

    def request(
        self,
        slots: int = 1,
        *,
        queues: Iterable[str | QueueShare] = (QUEUE,),
        worker: str = "w1",
        **fields: Any,
    ) -> ReserveRequest:
        shares = tuple(q if isinstance(q, QueueShare) else QueueShare(q) for q in queues)
        return ReserveRequest(
            worker=worker, queues=shares, slots=slots, **{"lease": LEASE, **fields}
        )

    def turn(
        self,
        outcomes: Sequence[Outcome] = (),
        slots: int = 0,
        *,
        room: int = 0,
        waiting: Sequence[Delivery] = (),
        budget: Budget = OPEN,
        **fields: Any,
    ) -> Turn:
        """Turns until the transport met no more cap on its work; what all of them brought."""
        lost: list[Delivery] = []
        deliveries: list[Delivery] = []
        refused: list[Delivery] = []
        for _ in range(MOST_TURNS):
            request = self.request(
                slots, room=room, waiting=tuple(waiting), budget=budget, **fields
            )
            turn = self.transport.turn(outcomes, request)
            outcomes = ()
            lost += turn.lost
            deliveries += turn.deliveries
            refused += turn.refused
            if not turn.more:
                return Turn(tuple(lost), tuple(deliveries), tuple(refused))
            started = [d for d in turn.deliveries if d.started]
            gone = {d.seq for d in (*started, *turn.refused)}
            waiting = [d for d in waiting if d.seq not in gone]
            slots -= len(started)
            room -= len(turn.deliveries) - len(started)
            for delivery in started:
                budget = budget.take(delivery.effective)
        pytest.fail(f"{MOST_TURNS} turns, and the transport still says that there is more to do")

    def reserve(self, slots: int = 1, *, room: int = 0, **fields: Any) -> list[Delivery]:
        return list(self.turn((), slots, room=room, **fields).deliveries)

    def take(self, **fields: Any) -> Delivery:
        """Reserve and start exactly one message."""
        (delivery,) = self.reserve(1, **fields)
        return delivery

    def hold(self, **fields: Any) -> Delivery:
        """Reserve exactly one message and leave it unstarted."""
        (delivery,) = self.reserve(0, room=1, **fields)
        return delivery

    def drain(self, **fields: Any) -> list[str]:
        """Take and finish one message after another; their task_ids in the order they came."""
        names: list[str] = []
        while taken := self.reserve(1, **fields):
            names.append(taken[0].message.task_id)
            self.finish(taken[0])
        return names

    def peek(self, queues: Iterable[str] = (QUEUE,), **fields: Any) -> int | None:
        shares = [QueueShare(q) for q in queues]
        return self.transport.peek_max_priority(shares, **fields)

    # -- settling ---------------------------------------------------------------------------------

    def settle(self, delivery: Delivery, verb: Verb, **fields: Any) -> bool:
        """Whether the outcome was applied."""
        return not self.transport.settle([Outcome(delivery=delivery, verb=verb, **fields)])

    def record(self, delivery: Delivery, state: State, **fields: Any) -> ResultRecord:
        values: dict[str, Any] = {"body": b"null", "ended_at": self.clock.now()}
        values.update(fields)
        return ResultRecord(task_id=delivery.message.task_id, state=state, **values)

    def succeeded(self, delivery: Delivery, then: Consequence = NOTHING, **fields: Any) -> Outcome:
        """The outcome of a run that succeeded."""
        record = self.record(delivery, State.SUCCEEDED, **fields)
        return Outcome(delivery=delivery, verb=Verb.FINISH, result=record, then=then)

    def finish(self, delivery: Delivery, then: Consequence = NOTHING, **fields: Any) -> bool:
        """Finish with success; whether it was applied."""
        return not self.transport.settle([self.succeeded(delivery, then, **fields)])

    # -- time and duties --------------------------------------------------------------------------

    def reap(self) -> int:
        """One look for lost leases; how many were taken back."""
        return self.transport.coordination.reap().done

    def lose_leases(self) -> int:
        """Let every lease end and be taken back."""
        self.clock.advance(LEASE + 1)
        done = self.reap()
        self.clock.advance(LEASE / 2)
        return done + self.reap()

    def sweep(self) -> None:
        """Sweep until nothing is left to do."""
        while self.transport.coordination.sweep().more:
            pass

    def state(self, task_id: str) -> State:
        return self.transport.results.state(task_id)

    def dead(self) -> list[str]:
        """The task_ids of the dead letters, oldest first."""
        return [d.message.task_id for d in self.transport.operators.dead_letters(limit=1000)]


class Contract:
    """Base of the groups: gives each test its own bench over the `make_transport` fixture."""

    @pytest.fixture
    def bench(self, make_transport: MakeTransport) -> Iterable[Bench]:
        bench = Bench(make_transport)
        try:
            yield bench
        finally:
            bench.close()


def names(deliveries: Iterable[Delivery]) -> list[str]:
    """The task_ids of these deliveries."""
    return [d.message.task_id for d in deliveries]
