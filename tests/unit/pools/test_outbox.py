"""The outbox loses nothing and wakes whoever waits, however its threads interleave."""

from __future__ import annotations

import threading

import pytest

from taskmq.bell import readable
from taskmq.pools.base import Completion, Ending
from taskmq.pools.outbox import Outbox


def completion(number: int) -> Completion:
    return Completion(number=number, ending=Ending.SUCCEEDED)


def test_everything_put_by_many_threads_is_taken_once() -> None:
    outbox = Outbox()

    def put(first: int) -> None:
        for number in range(first, first + 500):
            outbox.put(completion(number))

    threads = [threading.Thread(target=put, args=(first,)) for first in range(0, 4_000, 500)]
    for thread in threads:
        thread.start()
    taken: list[int] = []
    rounds = 0
    while len(taken) < 4_000:
        # Always by way of the descriptor: a wake-up that is missed shows as a wait that times out.
        readable([outbox.fd], 5.0)
        found = outbox.take()
        taken += [c.number for c in found]
        rounds += 1
        assert rounds < 20_000
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(4_000))
    outbox.close()


def test_after_the_end_putting_and_taking_are_harmless() -> None:
    outbox = Outbox()
    outbox.put(completion(1))
    outbox.close()
    outbox.put(completion(2))
    outbox.close()
    assert [c.number for c in outbox.take()] == [1, 2]


def test_a_ring_that_comes_after_its_item_was_taken_is_not_heard_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outbox = Outbox()
    with monkeypatch.context() as late:
        late.setattr(outbox._bell, "ring", lambda: None)
        outbox.put(completion(1))
        assert [c.number for c in outbox.take()] == [1]
    outbox._bell.ring()

    assert readable([outbox.fd], 5.0)
    assert outbox.take() == []
    assert not readable([outbox.fd], 0)

    outbox.put(completion(2))
    assert readable([outbox.fd], 5.0)
    assert [c.number for c in outbox.take()] == [2]
    outbox.close()
