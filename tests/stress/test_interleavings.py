"""Every interleaving of two workers' steps on one file, with the clock set on between them: I2 and I3 hold.

A schedule says whose step is next and when time passes. What the store answers is compared with what the
token alone decides: who claimed last, unless it was taken back or has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from taskmq.clock import FakeClock
from taskmq.message import Delivery, Message, ResultRecord
from taskmq.states import State
from taskmq.transports.base import Outcome, QueueShare, ReserveRequest, Settings, Verb
from taskmq.transports.sqlite import SQLiteTransport

LEASE = 9.0
STEPS = 4
# Past the end of a lease, then past the time that lies between two looks.
PASSES = (LEASE * 1.1, LEASE * 0.4)

PROGRAMS = [
    # One works, the other looks for lost leases and goes on with what it finds.
    (("claim", "renew", "ack", "renew"), ("reap", "reap", "claim", "ack")),
    (("claim", "ack", "ack", "claim"), ("reap", "reap", "claim", "renew")),
    # Both do the same.
    (("reap", "reap", "claim", "ack"), ("reap", "reap", "claim", "ack")),
]


class Schedule(NamedTuple):
    """Whose turn it is, eight times, and how much time passes before each step."""

    turns: tuple[int, ...]
    passes: dict[int, float]


def schedules() -> Iterator[Schedule]:
    """All orders of two times four steps, each with time passing at none, one or two places."""
    length = 2 * STEPS
    gaps = range(1, length)
    places = [()] + [(g,) for g in gaps] + list(combinations(gaps, 2))
    for mine in combinations(range(length), STEPS):
        turns = tuple(0 if step in mine else 1 for step in range(length))
        for place in places:
            passes = dict(zip(place, PASSES, strict=False))
            yield Schedule(turns, passes)


class Actor:
    """One worker: a transport of its own, and what it believes to hold."""

    def __init__(self, transport: SQLiteTransport, name: str) -> None:
        self.transport = transport
        self.request = ReserveRequest(worker=name, queues=(QueueShare("q"),), slots=1, lease=LEASE)
        self.held: Delivery | None = None


class Play:
    """One message under one schedule, and what the tokens say should come of each step."""

    def __init__(self, actors: tuple[Actor, Actor], clock: FakeClock, name: str) -> None:
        self.actors = actors
        self.clock = clock
        self.name = name
        # The token that decides, None while nobody holds the message.
        self.current: int | None = None
        self.until = 0.0
        self.ended = False
        self.acks = 0
        self.ended_by = ""

    def step(self, what: str, actor: Actor) -> None:
        getattr(self, what)(actor)

    def claim(self, actor: Actor) -> None:
        deliveries = actor.transport.reserve(actor.request)
        # I2: exactly what nobody holds can be claimed.
        assert bool(deliveries) == (self.current is None and not self.ended)
        for delivery in deliveries:
            assert delivery.message.task_id == self.name
            actor.held, self.current = delivery, delivery.token
            self.until = delivery.lease_until

    def renew(self, actor: Actor) -> None:
        if actor.held is None:
            return
        lost = actor.transport.extend([actor.held], LEASE)
        assert (not lost) == (actor.held.token == self.current)
        if not lost:
            self.until = self.clock.now() + LEASE

    def ack(self, actor: Actor) -> None:
        if actor.held is None:
            return
        record = ResultRecord(task_id=self.name, state=State.SUCCEEDED, worker=actor.request.worker)
        outcome = Outcome(delivery=actor.held, verb=Verb.FINISH, result=record)
        lost = actor.transport.settle([outcome])
        # I3: only the token that holds the message ends it, and only once.
        assert (not lost) == (actor.held.token == self.current)
        if not lost:
            self.acks += 1
            self.ended, self.current = True, None
            self.ended_by = actor.request.worker

    def reap(self, actor: Actor) -> None:
        taken = actor.transport.coordination.reap().done
        # I2: a lease that runs is nobody's to take.
        assert taken <= (self.current is not None and self.until <= self.clock.now())
        if taken:
            self.current = None


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def actors(tmp_path: Path, clock: FakeClock) -> Iterator[tuple[Actor, Actor]]:
    transports = [
        SQLiteTransport(
            tmp_path / "q.db", Settings(lease=LEASE), clock=clock, random=Random(number)
        )
        for number in range(2)
    ]
    for transport in transports:
        transport.open()
    yield Actor(transports[0], "one"), Actor(transports[1], "two")
    for transport in transports:
        transport.close()


@pytest.mark.parametrize("programs", PROGRAMS, ids=["rescue", "twice", "alike"])
def test_in_every_order_the_token_alone_decides(
    actors: tuple[Actor, Actor], clock: FakeClock, programs: tuple[tuple[str, ...], ...]
) -> None:
    seen = {"ended": 0, "taken over": 0}
    for number, schedule in enumerate(schedules()):
        play = Play(actors, clock, f"m{number}")
        for actor in actors:
            actor.held = None
        message = Message(
            message_id=play.name, task_id=play.name, task="t", queue="q", body=b"[[],{},{}]"
        )
        actors[0].transport.submit([message])
        done = [0, 0]
        tokens = set()
        for place, who in enumerate(schedule.turns):
            clock.advance(schedule.passes.get(place, 0.0))
            try:
                play.step(programs[who][done[who]], actors[who])
            except AssertionError as exc:
                raise AssertionError(f"step {place} of {schedule} of {programs}") from exc
            done[who] += 1
            tokens |= {a.held.token for a in actors if a.held is not None}
        assert play.acks <= 1
        seen["ended"] += play.ended
        seen["taken over"] += len(tokens) > 1
        clear(actors, play)
    # Each program comes to what it is there for.
    assert all(seen.values()), seen


def clear(actors: tuple[Actor, Actor], play: Play) -> None:
    """The next schedule begins with nothing; what this one left says who ended it."""
    transport = actors[0].transport
    if play.ended:
        record = transport.results.get(play.name)
        assert record is not None
        assert record.worker == play.ended_by
        return
    holding = [a.held for a in actors if a.held is not None and a.held.token == play.current]
    (left,) = holding or transport.reserve(actors[0].request)
    assert not transport.settle([Outcome(delivery=left, verb=Verb.FINISH)])
