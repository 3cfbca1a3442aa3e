"""A transport that fails costs waiting; one that stays away is reconnected and then given up."""

from __future__ import annotations

import logging
from random import Random
from typing import Any

import pytest

from taskmq.clock import FakeClock
from taskmq.errors import (
    TransportCorrupt,
    TransportError,
    TransportFull,
    TransportMoved,
    TransportUnavailable,
)
from taskmq.worker.exits import EXIT_CORRUPT, EXIT_FAILED
from taskmq.worker.link import Link


class Reopened:
    """Stands for a transport: counts how often it was opened."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails: Exception | None = None

    def close(self) -> None:
        self.calls.append("close")

    def open(self) -> None:
        self.calls.append("open")
        if self.fails is not None:
            raise self.fails


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def transport() -> Reopened:
    return Reopened()


@pytest.fixture
def link(clock: FakeClock, transport: Any) -> Link:
    return Link(transport, clock=clock, random=Random(1), watchdog=60.0)


def poll(link: Link, error: Exception | None = None) -> Any:
    """One poll of the transport: it fails with `error`, or gives 1."""
    return link.attempt("a turn", failing(error) if error else lambda: 1, poll=True)


def failing(error: Exception) -> Any:
    def call() -> None:
        raise error

    return call


def test_a_failure_backs_off_and_each_further_one_longer(link: Link, clock: FakeClock) -> None:
    waits = []
    for _ in range(12):
        assert poll(link, TransportUnavailable("locked")) is None
        now = clock.monotonic()
        assert not link.ready(now)
        waits.append(link.retry_at - now)
        clock.advance(waits[-1])
        assert link.ready(clock.monotonic())
    assert waits[0] < 0.1
    assert waits[0] < waits[3] < waits[6]
    assert max(waits) <= 7.5


def test_a_success_forgets_the_failures(link: Link, clock: FakeClock) -> None:
    poll(link, TransportFull("no room"))
    assert link.full
    clock.advance(10)
    assert poll(link) == 1
    assert link.ready(clock.monotonic())
    assert not link.full


def test_a_damaged_store_stops_the_worker_and_is_not_opened_again(
    link: Link, clock: FakeClock, transport: Reopened
) -> None:
    assert poll(link, TransportCorrupt("page 5")) is None
    assert link.fatal == EXIT_CORRUPT
    assert not link.ready(clock.monotonic())
    assert transport.calls == []


def test_a_moved_file_is_opened_anew(link: Link, transport: Reopened) -> None:
    poll(link, TransportMoved("replaced"))
    assert transport.calls == ["close", "open"]
    assert link.fatal is None


def test_the_watchdog_reconnects_and_after_as_long_again_gives_up(
    link: Link, clock: FakeClock, transport: Reopened, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    poll(link, TransportUnavailable("gone"))
    clock.advance(61)
    poll(link, TransportUnavailable("gone"))
    assert transport.calls == ["close", "open"]
    assert link.fatal is None
    clock.advance(61)
    poll(link, TransportUnavailable("gone"))
    assert link.fatal == EXIT_FAILED


def test_a_reconnect_that_fails_is_no_end_yet(
    link: Link, clock: FakeClock, transport: Reopened
) -> None:
    transport.fails = TransportUnavailable("still gone")
    poll(link, TransportUnavailable("gone"))
    clock.advance(61)
    poll(link, TransportUnavailable("gone"))
    clock.advance(5)
    assert poll(link) == 1
    assert link.fatal is None


def test_a_watchdog_of_zero_never_bites(clock: FakeClock, transport: Any) -> None:
    link = Link(transport, clock=clock, random=Random(1), watchdog=0)
    for _ in range(3):
        poll(link, TransportUnavailable("gone"))
        clock.advance(1_000)
    assert transport.calls == []
    assert link.fatal is None


def test_an_error_that_is_not_ours_is_logged_with_its_traceback(
    link: Link, caplog: pytest.LogCaptureFixture
) -> None:
    poll(link, ZeroDivisionError("a fault of the adapter"))
    poll(link, TransportError("an error of ours"))
    first, second = [r for r in caplog.records if getattr(r, "event", "") == "transport.failed"]
    assert first.exc_info is not None
    assert not second.exc_info


def test_what_succeeds_beside_failing_polls_does_not_calm_the_watchdog(
    link: Link, clock: FakeClock, transport: Reopened
) -> None:
    for _ in range(3):
        poll(link, TransportUnavailable("locked"))
        assert link.attempt("looking for commands", lambda: 1) == 1
        clock.advance(31)
    assert transport.calls == ["close", "open"]


def test_a_chore_that_fails_alone_does_not_wake_the_watchdog(
    link: Link, clock: FakeClock, transport: Reopened
) -> None:
    for _ in range(5):
        link.attempt("a heartbeat", failing(TransportUnavailable("locked")))
        clock.advance(100)
        assert poll(link) == 1
    assert transport.calls == []


def test_a_full_store_does_not_end_the_worker(
    link: Link, clock: FakeClock, transport: Reopened
) -> None:
    for _ in range(5):
        poll(link, TransportFull("no room"))
        clock.advance(100)
    assert transport.calls == []
    assert link.fatal is None
