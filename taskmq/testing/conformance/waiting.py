"""Waiting for work: returns when something came, when a descriptor is readable, or after its time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from taskmq.testing.conformance.bench import Bench, Contract

# Far above what any wake-up takes; a wait that is not woken fails the test by pytest's own timeout.
LONG = 30.0


class TestWait(Contract):
    @pytest.fixture
    def pipe(self) -> Iterator[tuple[int, int]]:
        reader, writer = os.pipe()
        yield reader, writer
        os.close(reader)
        os.close(writer)

    def settled(self, bench: Bench) -> None:
        """The first waits may return early for what came before."""
        for _ in range(3):
            bench.transport.wait(0)

    def test_it_returns_when_a_descriptor_is_readable_and_does_not_read(
        self, bench: Bench, pipe: tuple[int, int]
    ) -> None:
        reader, writer = pipe
        self.settled(bench)
        os.write(writer, b"x")

        bench.transport.wait(LONG, [reader])

        assert os.read(reader, 10) == b"x"

    def test_no_time_at_all_is_a_look(self, bench: Bench) -> None:
        bench.transport.wait(0)
        bench.transport.wait(0, [])

    def test_it_returns_after_its_timeout(self, bench: Bench, pipe: tuple[int, int]) -> None:
        self.settled(bench)

        bench.transport.wait(0.02, [pipe[0]])

    def test_nothing_that_came_between_a_look_and_a_wait_is_slept_over(self, bench: Bench) -> None:
        self.settled(bench)
        assert bench.reserve(1) == []
        bench.submit("a")

        bench.transport.wait(LONG)

        assert len(bench.reserve(1)) == 1

    def test_a_submit_of_another_thread_wakes_it(self, bench: Bench) -> None:
        self.settled(bench)
        producer = threading.Thread(target=bench.submit, args=("a",))
        producer.start()
        while not bench.reserve(1):
            bench.transport.wait(LONG)
        producer.join()
