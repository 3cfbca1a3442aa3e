"""Who holds the write lock may die, stop, or leave a child behind: the others go on, or are told."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from taskmq.errors import TransportUnavailable
from taskmq.transports.sqlite import SQLiteTransport
from taskmq.transports.sqlite.options import SQLiteOptions
from tests.faults.sqlite.actors import message


def impatient(path: Path) -> SQLiteTransport:
    transport = SQLiteTransport(path, options=SQLiteOptions(busy_timeout=0.2))
    transport.open()
    return transport


def test_a_holder_that_is_killed_frees_the_lock_and_its_transaction_is_gone(
    actor, transport
) -> None:
    holder = actor("hold")
    holder.until("inside")
    holder.kill()

    transport.submit([message("a")])

    assert [info.name for info in transport.operators.queues()] == ["q"]


def test_a_child_forked_inside_the_lock_does_not_keep_it_when_the_parent_is_killed(
    actor, transport
) -> None:
    holder = actor("hold_and_fork")
    child = int(holder.until("child"))
    holder.until("inside")
    holder.kill()

    transport.submit([message("a")])

    os.kill(child, 0)  # it is alive, and was all the time
    assert transport.operators.find("a")


def test_a_stopped_holder_is_named_and_waited_for_no_longer_than_told(actor, path: Path) -> None:
    holder = actor("hold_until_told")
    holder.until("inside")
    os.kill(holder.pid, signal.SIGSTOP)
    # The transport opens its file under the same lock.
    with pytest.raises(TransportUnavailable) as refused:
        impatient(path)

    assert f"process {holder.pid} (" in str(refused.value)
    assert "stopped" in str(refused.value)
    os.kill(holder.pid, signal.SIGCONT)
    os.kill(holder.pid, signal.SIGUSR1)
    holder.process.wait(10)
    transport = impatient(path)
    transport.submit([message("a")])
    transport.close()


def test_a_stopped_holder_does_not_keep_anybody_from_reading(actor, path: Path, transport) -> None:
    transport.submit([message("a")])
    transport.operators.queues()
    holder = actor("hold_until_told")
    holder.until("inside")
    os.kill(holder.pid, signal.SIGSTOP)

    assert transport.operators.find("a")
    assert transport.results.state("a") == "queued"
    assert transport.turn((), None).deliveries == ()

    os.kill(holder.pid, signal.SIGCONT)
    os.kill(holder.pid, signal.SIGUSR1)
    holder.process.wait(10)
