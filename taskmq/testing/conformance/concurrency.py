"""Threads on one transport: every message goes to one of them, and no call fails (I1, I2)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from taskmq.testing.conformance.bench import Bench, Contract, names


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work(number)` in `count` threads at once; the first error of any of them is raised."""
    errors: list[BaseException] = []
    gate = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            gate.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class TestThreads(Contract):
    def test_no_message_is_claimed_twice(self, bench: Bench) -> None:
        bench.transport.submit([bench.message(f"m{i}") for i in range(200)])
        taken: list[list[str]] = [[] for _ in range(4)]

        def consume(number: int) -> None:
            while found := bench.reserve(3, worker=f"w{number}"):
                taken[number] += names(found)
                bench.transport.settle([bench.succeeded(d) for d in found])

        in_threads(4, consume)

        counts = Counter(name for mine in taken for name in mine)
        assert counts == {f"m{i}": 1 for i in range(200)}

    def test_nothing_that_threads_submit_is_lost_and_each_keeps_its_order(
        self, bench: Bench
    ) -> None:
        def produce(number: int) -> None:
            for i in range(25):
                bench.submit(f"{number}-{i:02}")

        in_threads(4, produce)

        order = bench.drain()
        assert len(order) == 100
        for number in range(4):
            mine = [name for name in order if name.startswith(f"{number}-")]
            assert mine == [f"{number}-{i:02}" for i in range(25)]

    def test_one_of_many_settles_of_one_delivery_counts(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        applied: list[bool] = []

        in_threads(4, lambda number: applied.append(bench.finish(delivery)))

        assert sorted(applied) == [False, False, False, True]
