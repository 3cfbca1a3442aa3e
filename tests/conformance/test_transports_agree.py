"""The same calls on two transports: whatever they are, both do the same.

Covers what the small model leaves out (rate limits, concurrency keys, weights, budgets, aging, purge,
the operators' answers), by comparison instead of a second implementation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from taskmq.message import ConcurrencyKey, Delivery, Rate
from taskmq.policy.aging import Aging
from taskmq.policy.bands import Budget, Window
from taskmq.states import AckMode, State
from taskmq.testing.conformance.bench import Bench, names
from taskmq.transports.base import QueueShare, Verb
from taskmq.transports.operators import Found
from tests.conformance.makers import MAKERS

QUEUES = ("a", "b", "c")
SHARES = tuple(QueueShare(q, w) for q, w in zip(QUEUES, (1, 2, 5), strict=True))

delays = st.sampled_from([0.0, 0.0, 0.5, 4.0])
agings = st.sampled_from([None, None, Aging(2.0, cap=4)])
budgets = st.sampled_from(
    [Budget(), Budget(), Budget(above_normal=1), Budget(below_urgent=1), Budget(2, 1, threshold=1)]
)
messages = st.fixed_dictionaries(
    {
        "queue": st.sampled_from(QUEUES),
        "priority": st.sampled_from([-2, 0, 0, 0, 1, 9]),
        "eta": st.sampled_from([None, None, None, 1.0, 5.0]),
        "expires": st.sampled_from([None, None, None, 3.0, 30.0]),
        "max_deliveries": st.integers(1, 3),
        "rate": st.sampled_from([None, None, Rate("slow", 2.0), Rate("fast", 0.5)]),
        "concurrency": st.sampled_from(
            [None, None, ConcurrencyKey("one"), ConcurrencyKey("two", 2)]
        ),
        "ack": st.sampled_from([AckMode.ON_FINISH, AckMode.ON_FINISH, AckMode.ON_START]),
    }
)


class Agreement(RuleBasedStateMachine):
    """`both` makes one call on each transport and fails where the answers differ."""

    kinds = ("memory", "sqlite")

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        makers = [MAKERS[kind](Path(self.directory.name)) for kind in self.kinds]
        self.benches = [Bench(maker) for maker in makers]
        for bench in self.benches:
            bench.make(max_yields=1)
        self.count = 0
        # What each transport delivered, in step: the same index is the same delivery.
        self.deliveries: tuple[list[Delivery], ...] = tuple([] for _ in self.benches)

    def teardown(self) -> None:
        for bench in self.benches:
            bench.close()
        self.directory.cleanup()

    def both(self, call: Callable[[Bench], Any]) -> Any:
        answers = [call(bench) for bench in self.benches]
        assert answers[0] == answers[1]
        return answers[0]

    def given(self, bench: Bench) -> list[Delivery]:
        return self.deliveries[self.benches.index(bench)]

    def pick(self, data: st.DataObject) -> Callable[[Bench], Delivery]:
        index = data.draw(st.integers(1, min(8, len(self.deliveries[0]))))
        return lambda bench: self.given(bench)[-index]

    def keep(self, bench: Bench, deliveries: Sequence[Delivery]) -> list[tuple[Any, ...]]:
        """Remember these; what both must agree on."""
        self.given(bench).extend(deliveries)
        return [
            (
                d.message,
                d.visible_at,
                d.deliveries,
                d.yields,
                d.yieldable,
                d.effective,
                d.started,
            )
            for d in deliveries
        ]

    # -- calls ------------------------------------------------------------------------------------

    @initialize(batch=st.lists(messages, min_size=8, max_size=16))
    def begin(self, batch) -> None:
        self.submit(batch)

    @rule(batch=st.lists(messages, min_size=1, max_size=5))
    def submit(self, batch) -> None:
        sent = []
        for fields in batch:
            now = self.benches[0].clock.now()
            eta, expires = fields.pop("eta"), fields.pop("expires")
            if fields["rate"] is not None:
                # Which queue's message asks first inside one batch is left to the transport.
                fields["rate"] = fields["rate"]._replace(key=f"{fields['queue']}-limit")
            fields["eta"] = None if eta is None else now + eta
            fields["expires_at"] = None if expires is None else now + expires
            sent.append(self.benches[0].message(f"m{self.count}", **fields))
            self.count += 1
        self.both(lambda bench: bench.transport.submit(sent))

    @rule(data=st.data())
    def work(self, data) -> None:
        verbs = [self.reserve, self.start, self.give_back, self.settle, self.settle]
        (data.draw(st.sampled_from(verbs)) if self.deliveries[0] else self.reserve)(data)

    @rule(data=st.data())
    def work_more(self, data) -> None:
        self.work(data)

    @rule(data=st.data())
    def work_still_more(self, data) -> None:
        self.work(data)

    def reserve(self, data) -> None:
        fields = {
            "queues": data.draw(st.lists(st.sampled_from(SHARES), min_size=1, unique=True)),
            "room": data.draw(st.integers(0, 3)),
            "budget": data.draw(budgets),
            "aging": data.draw(agings),
        }
        slots = data.draw(st.integers(0, 6))
        waiting = data.draw(st.booleans())

        def call(bench: Bench) -> Any:
            held = [d for d in self.given(bench) if not d.started] if waiting else []
            turn = bench.turn((), slots, waiting=held[-4:], **fields)
            return self.keep(bench, turn.deliveries), names(turn.refused)

        self.both(call)

    def start(self, data) -> None:
        pick = self.pick(data)

        def call(bench: Bench) -> Any:
            result = bench.transport.start([pick(bench)])
            return self.keep(bench, result.started), names(result.refused)

        self.both(call)

    def give_back(self, data) -> None:
        pick, delay = self.pick(data), data.draw(delays)
        self.both(lambda bench: bench.transport.yield_reservation(pick(bench), delay=delay))

    def settle(self, data) -> None:
        pick, verb = self.pick(data), data.draw(st.sampled_from(Verb))
        fields = {
            "delay": data.draw(delays),
            "counted": data.draw(st.booleans()),
            "priority": data.draw(st.sampled_from([None, None, 3])) if verb is Verb.RETRY else None,
            "reason": "test",
        }

        def call(bench: Bench) -> bool:
            delivery = pick(bench)
            record = bench.record(delivery, State.SUCCEEDED) if verb is Verb.FINISH else None
            return bench.settle(delivery, verb, result=record, **fields)

        self.both(call)

    @rule(seconds=st.sampled_from([0.25, 0.5, 2.0, 6.0]))
    def advance(self, seconds) -> None:
        self.both(lambda bench: bench.clock.advance(seconds))
        self.both(lambda bench: bench.sweep())

    @rule(data=st.data())
    def operate(self, data) -> None:
        verbs = [self.revoke, self.pause, self.purge, self.replay, self.lose_leases]
        data.draw(st.sampled_from(verbs))(data)

    def revoke(self, data) -> None:
        name = f"m{data.draw(st.integers(0, self.count))}"
        self.both(lambda bench: bench.transport.operators.revoke([name]))

    def pause(self, data) -> None:
        queue = data.draw(st.sampled_from(QUEUES))
        paused = dict(self.both(lambda bench: bench.transport.operators.queues()))
        if any(paused.values()):
            self.both(lambda b: [b.transport.operators.resume(q) for q in QUEUES])
        else:
            self.both(lambda bench: bench.transport.operators.pause(queue))

    def purge(self, data) -> None:
        queue = data.draw(st.sampled_from(QUEUES))
        self.both(lambda bench: bench.transport.operators.purge(queue))

    def replay(self, data) -> None:
        priority = data.draw(st.sampled_from([None, None, 4]))
        letters = self.both(lambda bench: bench.transport.operators.dead_letters(limit=3))
        numbers = [letter.number for letter in letters]
        self.both(lambda bench: bench.transport.operators.replay(numbers, priority=priority))

    def lose_leases(self, data) -> None:
        self.both(lambda bench: bench.lose_leases())
        self.both(lambda bench: bench.sweep())

    # -- answers ----------------------------------------------------------------------------------

    @invariant()
    def both_see_the_same(self) -> None:
        def look(bench: Bench) -> Any:
            return {
                "peek": bench.peek(QUEUES),
                "peek, window": bench.peek(QUEUES[:2], window=Window(high=0)),
                "peek, aging": bench.peek(QUEUES, aging=Aging(2.0, cap=4)),
                "preview": [p._replace(seq=0) for p in bench.transport.operators.peek(SHARES, 8)],
            }

        def count(bench: Bench) -> Any:
            # These may be a turn behind with what is due and not moved yet: any reserve moves it.
            bench.reserve(1, queues=("nobody's",))
            return {
                "depth": bench.transport.operators.depth(),
                "dead": bench.transport.operators.dead_letters(),
            }

        self.both(look)
        self.both(count)
        for number in range(max(0, self.count - 4), self.count):
            self.both(partial(self.find, name=f"m{number}"))
            self.both(partial(self.result, name=f"m{number}"))

    def result(self, bench: Bench, name: str) -> Any:
        # When it ended may differ: an expiry is noticed by who looks first.
        record = bench.transport.results.get(name)
        return record and (record.state, record.body, record.retries)

    def find(self, bench: Bench, name: str) -> list[Found]:
        # A sequence may be used again once the newest message is gone; the order is the same.
        return [replace(f, seq=0) for f in bench.transport.operators.find(name)]


@pytest.mark.timeout(300)  # a failure is shrunk first
def test_memory_and_sqlite_answer_every_call_alike() -> None:
    run_state_machine_as_test(
        Agreement,
        settings=settings(
            max_examples=40,
            stateful_step_count=50,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
