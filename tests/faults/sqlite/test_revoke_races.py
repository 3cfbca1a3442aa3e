"""A revoke meets a reserve, a start or an end (row 49): what it says is what happens (I8)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from taskmq.message import ResultRecord
from taskmq.states import State
from taskmq.transports.base import Outcome, ReserveRequest, Verb
from taskmq.transports.operators import Revoked
from taskmq.transports.sqlite import SQLiteTransport
from tests.faults.sqlite.actors import QUEUES, message

T = TypeVar("T")

ROUNDS = 100


@pytest.fixture
def other(path: Path, transport: SQLiteTransport) -> Iterator[SQLiteTransport]:
    """Who revokes: another connection, as another process has it."""
    other = SQLiteTransport(path)
    other.open()
    yield other
    other.close()


def meet(turn: int, work: Callable[[], T], revoke: Callable[[], Revoked]) -> tuple[T, Revoked]:
    """Both at once; so that either order is seen for certain, one of them is first in two of three rounds."""
    if turn % 3 == 0:
        done = work()
        return done, revoke()
    if turn % 3 == 1:
        said = revoke()
        return work(), said
    barrier = threading.Barrier(2)
    results: list[T] = []

    def run() -> None:
        barrier.wait(10)
        results.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    barrier.wait(10)
    said = revoke()
    thread.join(10)
    return results[0], said


def request(slots: int, room: int = 0) -> ReserveRequest:
    return ReserveRequest(worker="w", queues=QUEUES, slots=slots, room=room)


def succeeded(task_id: str) -> ResultRecord:
    return ResultRecord(task_id=task_id, state=State.SUCCEEDED, body=b"1")


def nothing_starts(transport: SQLiteTransport) -> bool:
    return transport.turn((), request(9)).deliveries == ()


def test_revoked_while_it_is_reserved_it_ends_or_it_runs(
    transport: SQLiteTransport, other: SQLiteTransport
) -> None:
    ended = 0
    for n in range(ROUNDS):
        name = f"m{n}"
        transport.submit([message(name)])

        taken, said = meet(
            n,
            lambda: transport.turn((), request(1)).deliveries,
            lambda name=name: other.operators.revoke([name])[0],  # type: ignore[misc]
        )

        assert len(taken) == (0 if said.ended else 1)
        assert said.was is (State.QUEUED if said.ended else State.RUNNING)
        if said.ended:
            ended += 1
            assert transport.results.state(name) is State.REVOKED
        else:
            # It was told that the run goes on; a retry of it does not.
            (delivery,) = taken
            assert transport.settle([Outcome(delivery=delivery, verb=Verb.RETRY)]) == ()
            assert transport.results.state(name) is State.REVOKED
        assert nothing_starts(transport)
    assert ROUNDS // 3 <= ended <= ROUNDS - ROUNDS // 3


def test_revoked_before_its_start_a_held_one_never_starts(
    transport: SQLiteTransport, other: SQLiteTransport
) -> None:
    ended = 0
    for n in range(ROUNDS):
        name = f"m{n}"
        transport.submit([message(name)])
        (held,) = transport.turn((), request(0, room=1)).deliveries

        start, said = meet(
            n,
            lambda held=held: transport.start([held]),  # type: ignore[misc]
            lambda name=name: other.operators.revoke([name])[0],  # type: ignore[misc]
        )

        assert len(start.started) == (0 if said.ended else 1)
        assert len(start.refused) == (1 if said.ended else 0)
        if said.ended:
            ended += 1
            assert transport.results.state(name) is State.REVOKED
        else:
            assert said.was is State.RUNNING
            (delivery,) = start.started
            outcome = Outcome(delivery=delivery, verb=Verb.FINISH, result=succeeded(name))
            assert transport.settle([outcome]) == ()
            assert transport.results.state(name) is State.SUCCEEDED
        assert nothing_starts(transport)
    assert ROUNDS // 3 <= ended <= ROUNDS - ROUNDS // 3


def test_revoked_at_its_end_it_stays_what_it_became(
    transport: SQLiteTransport, other: SQLiteTransport
) -> None:
    seen = set()
    for n in range(ROUNDS):
        name = f"m{n}"
        transport.submit([message(name)])
        (delivery,) = transport.turn((), request(1)).deliveries
        outcome = Outcome(delivery=delivery, verb=Verb.FINISH, result=succeeded(name))

        lost, said = meet(
            n,
            lambda outcome=outcome: transport.settle([outcome]),  # type: ignore[misc]
            lambda name=name: other.operators.revoke([name])[0],  # type: ignore[misc]
        )

        assert lost == ()
        assert not said.ended
        seen.add(said.was)
        assert transport.results.state(name) is State.SUCCEEDED
        assert nothing_starts(transport)
    assert seen == {State.RUNNING, State.SUCCEEDED}
