"""The demo's second round: a worker that keeps what it prefetched."""

from __future__ import annotations

from taskmq.cli.demo.baseline import WithoutYielding
from taskmq.clock import FakeClock
from taskmq.message import Delivery, Message
from taskmq.transports.base import Outcome, QueueShare, ReserveRequest, Transport, Turn, Verb
from taskmq.transports.memory import MemoryTransport
from tests.unit.cli.values import message

QUEUES = (QueueShare("email"),)


def numbered(number: int, priority: int) -> Message:
    return message(message_id=f"m{number}", task_id=f"t{number}", priority=priority)


def ask(transport: Transport, slots: int, room: int, *waiting: Delivery, done: Turn) -> Turn:
    """Settle what runs as finished and ask again."""
    outcomes = [Outcome(delivery=d, verb=Verb.FINISH) for d in done.deliveries if d.started]
    request = ReserveRequest(
        worker="w", queues=QUEUES, slots=slots, room=room, waiting=tuple(waiting)
    )
    return transport.turn(outcomes, request)


def begun(turn: Turn) -> list[str]:
    return [d.message.task_id for d in turn.deliveries if d.started]


def held(turn: Turn) -> list[Delivery]:
    return [d for d in turn.deliveries if not d.started]


def prefetched(transport: Transport) -> Turn:
    """Four bulk messages, one running and three held, and then an urgent one."""
    transport.submit([numbered(n, -5) for n in range(4)])
    first = ask(transport, 1, 3, done=Turn())
    transport.submit([numbered(9, 9)])
    return first


def test_the_real_transport_gives_a_free_slot_to_the_urgent_one() -> None:
    transport = MemoryTransport(clock=FakeClock())
    first = prefetched(transport)

    assert begun(ask(transport, 1, 0, *held(first), done=first)) == ["t9"]


def test_without_yielding_what_is_held_runs_first_and_in_its_order() -> None:
    transport = WithoutYielding(MemoryTransport(clock=FakeClock()))
    turn = prefetched(transport)
    order = begun(turn)

    for _ in range(4):
        turn = ask(transport, 1, 0, *held(turn)[:1], done=turn)
        order += begun(turn)

    assert order == ["t0", "t1", "t2", "t3", "t9"]


def test_without_yielding_nothing_more_urgent_is_ever_seen() -> None:
    transport = WithoutYielding(MemoryTransport(clock=FakeClock()))
    prefetched(transport)

    assert transport.inner.peek_max_priority(QUEUES) == 9
    assert transport.peek_max_priority(QUEUES) is None


def test_what_was_handed_back_is_not_started_from_memory() -> None:
    transport = WithoutYielding(MemoryTransport(clock=FakeClock()))
    first = prefetched(transport)
    released = [Outcome(delivery=d, verb=Verb.RELEASE) for d in held(first)]
    transport.turn(released, None)

    assert begun(ask(transport, 1, 0, done=first)) == ["t9"]
