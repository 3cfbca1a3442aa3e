"""The life of a memory transport: one process, as long as the object."""

from __future__ import annotations

import os
from random import Random

import pytest

from taskmq.clock import FakeClock
from taskmq.errors import TransportUnavailable
from taskmq.message import Message
from taskmq.transports.base import QueueShare, ReserveRequest
from taskmq.transports.memory import MemoryTransport


@pytest.fixture
def transport() -> MemoryTransport:
    transport = MemoryTransport(clock=FakeClock(), random=Random(1))
    transport.open()
    return transport


def message(name: str) -> Message:
    return Message(message_id=name, task_id=name, task="t", queue="q", body=b"[[],{},{}]")


def reserve(transport: MemoryTransport) -> list[str]:
    request = ReserveRequest(worker="w", queues=(QueueShare("q"),), slots=5)
    return [d.message.task_id for d in transport.reserve(request)]


def test_messages_outlive_a_close(transport: MemoryTransport) -> None:
    transport.submit([message("a")])
    transport.close()
    transport.close()
    transport.open()

    assert reserve(transport) == ["a"]


def test_it_says_that_it_lives_in_one_process(transport: MemoryTransport) -> None:
    assert not transport.capabilities.persistent
    assert not transport.capabilities.processes


def test_a_forked_child_is_told_that_nobody_would_see_its_messages(
    transport: MemoryTransport,
) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            transport.submit([message("lost")])
        except TransportUnavailable as error:
            code = 0 if "sqlite://" in str(error) else 2
        finally:
            os._exit(code)

    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert reserve(transport) == []


def test_a_failure_inside_an_operation_leaves_the_transport_usable(
    transport: MemoryTransport,
) -> None:
    with pytest.raises(AttributeError):
        transport.submit([message("a"), None])  # type: ignore[list-item]

    transport.submit([message("b")])

    assert reserve(transport) == ["b"]
