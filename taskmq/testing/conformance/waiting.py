"""Waiting for work: returns when something came, when a descriptor is readable, or after its time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from taskmq.message import ConcurrencyKey
from taskmq.testing.conformance.bench import Bench, Contract
from taskmq.transports.base import Verb

# Far above what any wake-up takes, and above PATIENCE: a wait that is not woken fails its test.
LONG = 300.0
PATIENCE = 20.0


def ends(work: Callable[[], object]) -> None:
    """Run `work` in a thread of its own and fail when it has not returned in good time."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if errors:
        raise errors[0]
    assert not thread.is_alive(), "the wait was not ended by what should end it"


class TestWait(Contract):
    @pytest.fixture
    def pipe(self) -> Iterator[tuple[int, int]]:
        reader, writer = os.pipe()
        yield reader, writer
        os.close(reader)
        os.close(writer)

    def settled(self, bench: Bench) -> None:
        """A thread's first waits may return early for what came before."""
        for _ in range(3):
            bench.transport.wait(0)

    def by_another_thread(self, work: Callable[[], object]) -> None:
        # A thread's own commits are no news to it.
        other = threading.Thread(target=work)
        other.start()
        other.join()

    def test_it_returns_when_a_descriptor_is_readable_and_does_not_read(
        self, bench: Bench, pipe: tuple[int, int]
    ) -> None:
        reader, writer = pipe

        def work() -> None:
            self.settled(bench)
            os.write(writer, b"x")
            bench.transport.wait(LONG, [reader])

        ends(work)

        assert os.read(reader, 10) == b"x"

    def test_no_time_at_all_is_a_look(self, bench: Bench) -> None:
        ends(lambda: bench.transport.wait(0))
        ends(lambda: bench.transport.wait(0, []))

    def test_it_returns_after_its_timeout(self, bench: Bench, pipe: tuple[int, int]) -> None:
        def work() -> None:
            self.settled(bench)
            bench.transport.wait(0.02, [pipe[0]])

        ends(work)

    def test_nothing_that_came_between_a_look_and_a_wait_is_slept_over(self, bench: Bench) -> None:
        def work() -> None:
            self.settled(bench)
            assert bench.reserve(1) == []
            self.by_another_thread(lambda: bench.submit("a"))
            bench.transport.wait(LONG)
            assert len(bench.reserve(1)) == 1

        ends(work)

    @pytest.mark.parametrize("way", ["submit", "release", "resume", "replay", "unblock"])
    def test_whatever_makes_a_message_claimable_ends_a_wait(self, bench: Bench, way: str) -> None:
        bench.submit("a", "b", concurrency=ConcurrencyKey("one"))
        held = bench.take()
        operators = bench.transport.operators
        act: Callable[[], object] = partial(bench.settle, held, Verb.RELEASE)
        if way == "submit":
            act = partial(bench.submit, "c")
        elif way == "resume":
            bench.settle(held, Verb.RELEASE)
            operators.pause("q")
            act = partial(operators.resume, "q")
        elif way == "replay":
            bench.settle(held, Verb.BURY, reason="bad")
            bench.finish(bench.take())
            act = partial(operators.replay, [d.number for d in operators.dead_letters()])
        elif way == "unblock":
            act = partial(bench.finish, held)

        def work() -> None:
            self.settled(bench)
            assert bench.reserve(1) == []
            self.by_another_thread(act)
            while not bench.reserve(1):
                bench.transport.wait(LONG)

        ends(work)

    def test_a_command_ends_a_wait(self, bench: Bench) -> None:
        coordination = bench.transport.coordination

        def work() -> None:
            self.settled(bench)
            self.by_another_thread(partial(coordination.send, "ping", to=["w1"]))
            while not coordination.commands("w1"):
                bench.transport.wait(LONG)

        ends(work)
