"""A call that is interrupted anywhere leaves no lock, no transaction and no half of anything behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskmq import interrupts
from taskmq.errors import SoftTimeLimitExceeded, TransportError, TransportUnavailable
from taskmq.pools.soft_limit import SOFT_LIMIT_SIGNAL, SoftLimit
from taskmq.states import State
from taskmq.transports.base import QueueShare, ReserveRequest
from taskmq.transports.sqlite import SQLiteTransport, forks
from taskmq.transports.sqlite.options import SQLiteOptions
from taskmq.transports.sqlite.section import Section
from tests.support.interrupting import interrupted_everywhere

Q = (QueueShare("q"),)


@pytest.fixture
def other(path: Path, transport: SQLiteTransport) -> Iterator[SQLiteTransport]:
    """Somebody else at the same file, who does not wait."""
    other = SQLiteTransport(path, options=SQLiteOptions(busy_timeout=0.05))
    other.open()
    yield other
    other.close()


def ids(transport: SQLiteTransport) -> list[str]:
    return [peeked.message.task_id for peeked in transport.operators.peek(Q, 10_000)]


def assert_free(transport: SQLiteTransport) -> None:
    store = transport._store
    assert not store._mutex.locked()
    assert not store._reading.locked()
    assert interrupts.here().depth == 0
    for connection in (store._writer, store._reader):
        assert connection is None or not connection.in_transaction


def test_a_submit_interrupted_anywhere_leaves_the_file_to_others(transport, other, bench) -> None:
    transport.submit([bench.message("first")])
    places = 0

    for place in interrupted_everywhere(
        lambda place: transport.submit([bench.message(f"mine-{place}")])
    ):
        assert_free(transport)
        other.submit([bench.message(f"other-{place}")])
        # Submitted again as its caller would: it is there once, whether it was stored or not.
        transport.submit([bench.message(f"mine-{place}")])
        places += 1

    assert places > 50
    found = ids(transport)
    assert len(found) == len(set(found)) == 2 * places + 2


def test_a_durable_submit_interrupted_anywhere_leaves_cheap_commits(
    path: Path, bench, monkeypatch
) -> None:
    transport = SQLiteTransport(path, options=SQLiteOptions(durability="full"))
    transport.open()
    transport.submit([bench.message("first")])
    writer = transport._store._writer
    assert writer is not None

    for _ in interrupted_everywhere(lambda place: transport.submit([bench.message(str(place))])):
        assert writer.execute("PRAGMA synchronous").fetchone()[0] == 1, "NORMAL again"
    transport.close()


def test_a_turn_interrupted_anywhere_leaves_the_file_to_others(transport, other, bench) -> None:
    request = ReserveRequest(worker="w", queues=Q, slots=1)
    transport.submit([bench.message(f"m{n}") for n in range(2000)])
    transport.turn([], request)

    for place in interrupted_everywhere(lambda _: transport.turn([], request)):
        assert_free(transport)
        other.submit([bench.message(f"other-{place}")])


def test_a_read_interrupted_anywhere_leaves_the_reader_usable(transport, other, bench) -> None:
    transport.submit([bench.message("a")])
    ids(transport)

    for _ in interrupted_everywhere(lambda _: transport.results.state("a")):
        assert_free(transport)
        assert transport.results.state("a") is State.QUEUED
    for _ in interrupted_everywhere(lambda _: transport.operators.depth()):
        assert_free(transport)
        assert [row.ready for row in transport.operators.depth()] == [1]


# A file that is interrupted between its opening and the `with` around it is closed when it is collected, and
# a connection may be interrupted while it is.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_opening_and_closing_interrupted_anywhere_may_be_repeated(path: Path, other, bench) -> None:
    transport = SQLiteTransport(path)

    def go_round(_: int) -> None:
        transport.open()
        transport.close()

    for place in interrupted_everywhere(go_round):
        other.submit([bench.message(f"other-{place}")])
        transport.open()
        transport.submit([bench.message(f"mine-{place}")])
        transport.close()


def test_what_is_rolled_back_by_an_interrupt_is_forgotten(transport, bench) -> None:
    """A lane made in a transaction that was interrupted must not be believed in."""
    # Each queue more makes the next submit longer, so the steps have to be wide.
    for place in interrupted_everywhere(
        lambda place: transport.submit([bench.message(f"a{place}", queue=f"q{place}")]), every=23
    ):
        transport.submit([bench.message(f"b{place}", queue=f"q{place}")])
        found = transport.operators.peek((QueueShare(f"q{place}"),), 10)
        assert f"b{place}" in [peeked.message.task_id for peeked in found]


# -- soft limits of our own -----------------------------------------------------------------------


@pytest.fixture
def limit() -> Iterator[SoftLimit]:
    assert SOFT_LIMIT_SIGNAL is not None
    before = signal.getsignal(SOFT_LIMIT_SIGNAL)
    limit = SoftLimit()
    limit.install()
    yield limit
    signal.signal(SOFT_LIMIT_SIGNAL, before)


def test_a_soft_limit_waits_for_the_end_of_the_transaction(transport, limit, bench) -> None:
    assert SOFT_LIMIT_SIGNAL is not None
    done = []

    def work(connection) -> None:
        signal.raise_signal(SOFT_LIMIT_SIGNAL)
        connection.execute("INSERT INTO queue(name) VALUES ('whole')")
        done.append(1)

    limit.arm(SoftTimeLimitExceeded)
    with pytest.raises(SoftTimeLimitExceeded):
        transport._store.write(work)

    assert done == [1]
    assert "whole" in [row.name for row in transport.operators.queues()]
    assert_free(transport)


def test_a_soft_limit_outside_of_the_store_is_raised_at_once(limit) -> None:
    assert SOFT_LIMIT_SIGNAL is not None
    limit.arm(SoftTimeLimitExceeded)
    with pytest.raises(SoftTimeLimitExceeded):
        signal.raise_signal(SOFT_LIMIT_SIGNAL)


def test_an_interrupt_from_another_thread_waits_for_the_outermost_end() -> None:
    outer, inner = Section(), Section()
    me = interrupts.here()
    done = []

    def from_another_thread() -> None:
        thread = threading.Thread(
            target=me.raise_there,
            args=(SoftTimeLimitExceeded("now"), lambda: done.append("at once")),
        )
        thread.start()
        thread.join(10)

    def work() -> None:
        inner.run(from_another_thread)
        done.append("outer")

    with pytest.raises(SoftTimeLimitExceeded, match="now"):
        outer.run(work)
    assert done == ["outer"]

    from_another_thread()
    assert done == ["outer", "at once"]


# -- signal handlers that come back ---------------------------------------------------------------


def test_a_handler_that_submits_while_it_interrupts_a_submit_is_told_so(transport, bench) -> None:
    refused: list[TransportError] = []

    def handler(*_: object) -> None:
        try:
            transport.submit([bench.message("from the handler")])
        except TransportUnavailable as exc:
            refused.append(exc)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        transport._store.write(lambda _: signal.raise_signal(signal.SIGALRM))
        signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)

    assert len(refused) == 1, "only the one that came in the middle"
    assert "signal handler" in str(refused[0])
    assert refused[0].retryable
    assert ids(transport) == ["from the handler"]


def test_a_handler_may_submit_while_it_interrupts_a_read(transport, bench) -> None:
    before = signal.signal(
        signal.SIGALRM, lambda *_: transport.submit([bench.message("from the handler")])
    )
    try:
        transport._store.read(lambda _: signal.raise_signal(signal.SIGALRM))
    finally:
        signal.signal(signal.SIGALRM, before)

    assert ids(transport) == ["from the handler"]


# -- forks ----------------------------------------------------------------------------------------


def test_a_child_that_cannot_take_over_its_locks_keeps_away_from_the_file(
    transport, bench, monkeypatch
) -> None:
    transport.submit([bench.message("a")])
    monkeypatch.setattr(forks, "take_over", lambda path: False)

    transport._store._abandon()

    with pytest.raises(TransportError, match="start this process anew"):
        transport.submit([bench.message("b")])
