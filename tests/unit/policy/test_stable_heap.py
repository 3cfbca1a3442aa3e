"""The heap under the memory transport, the coordinator and the public queue, against a sorted list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from taskmq.policy.stable_heap import StableHeap


class Uncomparable:
    """A payload that fails the test when anything compares it."""

    def __lt__(self, other: Any) -> bool:
        raise AssertionError("payloads are never compared")

    __eq__ = __lt__
    __hash__ = object.__hash__


def drain(heap: StableHeap[Any]) -> list[Any]:
    return [heap.pop()[2] for _ in range(len(heap))]


def test_larger_priority_first_and_equal_ones_in_order_of_push() -> None:
    heap: StableHeap[str] = StableHeap()
    for priority, name in [(0, "a"), (5, "b"), (0, "c"), (-9, "d"), (5, "e")]:
        heap.push(priority, name)

    assert drain(heap) == ["b", "e", "a", "c", "d"]


def test_payloads_are_never_compared() -> None:
    heap: StableHeap[Uncomparable] = StableHeap()
    payloads = [Uncomparable() for _ in range(50)]
    for payload in payloads:
        heap.push(0, payload, at=1.0)
    assert len(list(heap.ordered())) == 50

    assert all(a is b for a, b in zip(drain(heap), payloads, strict=True))


def test_time_orders_before_the_sequence() -> None:
    heap: StableHeap[str] = StableHeap()
    heap.push(0, "later", at=2.0, sequence=1)
    heap.push(0, "sooner", at=1.0, sequence=2)

    assert drain(heap) == ["sooner", "later"]


def test_entry_put_back_under_its_old_sequence_is_there_once() -> None:
    heap: StableHeap[Any] = StableHeap()
    heap.push(0, Uncomparable(), key="a", sequence=1)
    heap.push(0, Uncomparable(), key="b", sequence=2)

    heap.remove("a")
    heap.push(0, "back", key="a", sequence=1)

    assert len(heap) == 2
    assert [sequence for _, sequence, _ in heap.ordered()] == [1, 2]
    assert heap.pop() == (0, 1, "back")
    assert len(heap) == 1


def test_key_is_in_the_heap_at_most_once() -> None:
    heap: StableHeap[str] = StableHeap()
    heap.push(0, "a", key="k")

    with pytest.raises(ValueError, match="key 'k' is in the heap already"):
        heap.push(1, "b", key="k")

    assert len(heap) == 1


def test_empty_heap_has_nothing_to_peek_and_refuses_to_pop() -> None:
    heap: StableHeap[str] = StableHeap()
    heap.push(0, "a", key="k")
    assert heap.remove("k")

    assert heap.peek() is None
    assert not heap.remove("k")
    with pytest.raises(IndexError):
        heap.pop()


def test_removed_entries_do_not_pile_up() -> None:
    heap: StableHeap[int] = StableHeap()
    heap.push(9, -1)
    for number in range(10_000):
        heap.push(0, number, key=("k", number))
        heap.remove(("k", number))

    assert len(heap._entries) <= 200


class AgainstAList(RuleBasedStateMachine):
    """The heap does what a sorted list of live entries does."""

    @initialize()
    def start(self) -> None:
        self.heap: StableHeap[Any] = StableHeap()
        self.model: dict[int, tuple[int, float, int]] = {}
        self.pushed = 0
        self.removed: list[tuple[int, tuple[int, float, int]]] = []

    @rule(priority=st.integers(-9, 9), at=st.sampled_from([0.0, 1.0]))
    def push(self, priority: int, at: float) -> None:
        self.pushed += 1
        key = self.pushed
        self.heap.push(priority, ("payload", key), key=key, at=at, sequence=key)
        self.model[key] = (-priority, at, key)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model)))
        assert self.heap.remove(key)
        self.removed.append((key, self.model.pop(key)))

    @precondition(lambda self: self.removed)
    @rule()
    def put_back(self) -> None:
        key, (negative, at, sequence) = self.removed.pop()
        self.heap.push(-negative, ("payload", key), key=key, at=at, sequence=sequence)
        self.model[key] = (negative, at, sequence)

    @precondition(lambda self: self.model)
    @rule()
    def pop(self) -> None:
        key, (negative, _, sequence) = min(self.model.items(), key=lambda item: item[1])
        assert self.heap.pop() == (-negative, sequence, ("payload", key))
        del self.model[key]

    @invariant()
    def same(self) -> None:
        expected = [(-n, s, ("payload", s)) for n, _, s in sorted(self.model.values())]
        assert len(self.heap) == len(expected)
        assert list(self.heap.ordered()) == expected
        assert self.heap.peek() == (expected[0] if expected else None)
        assert all(key in self.heap for key in self.model)
        assert all(key not in self.heap for key, _ in self.removed)


TestAgainstAList = AgainstAList.TestCase
TestAgainstAList.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
