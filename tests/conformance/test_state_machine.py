"""Any sequence of calls, against a small model: what one transport does is what the model says.

Invariants of the reliability page, by name: I1 no loss, I2 lease exclusion, I3 fenced effects, I4
justified redelivery, I5 bounded poison, I6 order, I7 not early and not after expiry, I8 no resurrection.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from taskmq.message import Delivery
from taskmq.states import State
from taskmq.testing.conformance.bench import LEASE, Bench
from taskmq.transports.base import Verb
from tests.conformance.makers import MAKERS
from tests.conformance.model import RESERVED, RUNNING, Model, Task

QUEUES = ("a", "b", "c")
# One yield is enough to make a message unyieldable, so that many are.
MAX_YIELDS = 1

# Each is a few seconds; a file on a disk costs more than a dict.
EXAMPLES = {"memory": 150, "sqlite": 50}

delays = st.sampled_from([0.0, 0.0, 0.5, 7.0])
some_queues = st.sets(st.sampled_from(QUEUES), min_size=1)
# Few levels, so that ties are common.
priorities = st.sampled_from([-9, -1, 0, 0, 0, 1, 9])
# queue, priority, seconds to its eta, seconds to its expiry, max_deliveries
specs = st.tuples(
    st.sampled_from(QUEUES),
    priorities,
    st.sampled_from([None, None, None, 0.0, 1.0, 7.0]),
    st.sampled_from([None, None, None, 2.0, 20.0]),
    st.integers(1, 2),
)


class TransportMachine(RuleBasedStateMachine):
    """Each rule does one thing to the transport and to the model, and compares what both say."""

    kind = ""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.bench = Bench(MAKERS[self.kind](Path(self.directory.name)))
        self.bench.make(max_yields=MAX_YIELDS)
        self.model = Model(now=self.bench.clock.now(), max_yields=MAX_YIELDS)
        self.names: list[str] = []
        # Every delivery there ever was, most of them stale by now.
        self.deliveries: list[Delivery] = []

    def teardown(self) -> None:
        try:
            # After a failure the two differ anyway: a second error would only hide the first.
            if sys.exc_info()[0] is None:
                self.drain()
        finally:
            self.bench.close()
            self.directory.cleanup()

    def pick(self, data: st.DataObject) -> tuple[Delivery, Task | None]:
        """One of the deliveries there ever were, mostly one that is held still."""
        held = [d for d in self.deliveries if self.model.held(d)]
        often = data.draw(st.sampled_from([True, True, True, False]))
        among = held if held and often else self.deliveries[-8:]
        delivery = data.draw(st.sampled_from(among))
        return delivery, self.model.held(delivery)

    # -- producers --------------------------------------------------------------------------------

    @initialize(specs=st.lists(specs, min_size=6, max_size=12))
    def begin(self, specs) -> None:
        self.submit(specs)

    @rule(specs=st.lists(specs, min_size=1, max_size=4))
    def submit(self, specs) -> None:
        now = self.model.now
        for queue, priority, eta, expires, max_deliveries in specs:
            name = f"m{len(self.names)}"
            self.names.append(name)
            visible_at = now + (eta or 0)
            expires_at = None if expires is None else now + expires
            fields = {"expires_at": expires_at, "max_deliveries": max_deliveries}
            if eta is not None:
                fields["eta"] = now + eta
            self.bench.submit(name, queue=queue, priority=priority, **fields)
            self.model.insert(
                Task(name, queue, priority, 0, visible_at, visible_at, expires_at, max_deliveries)
            )

        if self.model.live:
            # Again under an id that is live: nothing may come of it.
            self.bench.submit(next(iter(self.model.live)), queue="a", priority=9)

    # -- workers ----------------------------------------------------------------------------------

    @rule(data=st.data())
    def work(self, data) -> None:
        """What workers do, as one rule: Hypothesis leaves whole rules out of a run at random."""
        verbs = [self.reserve, self.start, self.give_back, self.settle, self.settle, self.extend]
        held = [d for d in self.deliveries if self.model.held(d)]
        verb = data.draw(st.sampled_from(verbs)) if held else self.reserve
        verb(data)

    @rule(data=st.data())
    def work_more(self, data) -> None:
        self.work(data)

    @rule(data=st.data())
    def work_still_more(self, data) -> None:
        self.work(data)

    def reserve(self, data) -> None:
        queues = data.draw(some_queues)
        slots, room = data.draw(st.tuples(st.integers(0, 4), st.integers(0, 3)))
        keep, worker = data.draw(st.tuples(st.booleans(), st.sampled_from(["w1", "w2"])))
        self.take(queues, slots, room, keep, worker)

    def take(self, queues, slots, room=0, keep=False, worker="w1") -> list[Delivery]:
        held = [d for d in self.deliveries if not d.started]
        waiting = [d for d in held if (t := self.model.held(d)) and t.place is RESERVED]
        if not keep:
            waiting = []
        turn = self.bench.turn((), slots, room=room, waiting=waiting, queues=queues, worker=worker)
        for refused in turn.refused:
            task = self.model.held(refused)
            assert task is not None
            self.refuse(task)
        gone = {d.seq for d in turn.refused}
        waiting = sorted((d for d in waiting if d.seq not in gone), key=lambda d: d.sort_key)
        for delivery in turn.deliveries:
            self.check_choice(delivery, waiting, queues)
        started = sum(d.started for d in turn.deliveries)
        left = len(self.model.claimable(queues))
        assert started == slots or (left == 0 and not waiting)
        assert len(turn.deliveries) - started == room or left == 0
        return list(turn.deliveries)

    def refuse(self, task: Task) -> None:
        """What a held one is that may not start: expired (I7), or of a paused queue."""
        if task.expires_at is not None and task.expires_at <= self.model.now:
            self.model.end(task, State.EXPIRED)
        else:
            assert task.queue in self.model.paused
            task.deliveries -= 1
            self.model.wait(task)

    def check_choice(self, delivery: Delivery, waiting: list[Delivery], queues: set[str]) -> None:
        """I6: nothing more urgent, and nothing earlier of its queue and band, was passed over."""
        claimable = self.model.claimable(queues)
        best = claimable[0].priority if claimable else None
        task = self.model.live[delivery.message.task_id]
        if waiting and delivery.started and delivery.token == waiting[0].token:
            assert best is None or best <= task.priority
            waiting.pop(0)
            task.place = RUNNING
        else:
            assert task in claimable
            assert task.priority == best
            peers = [t for t in claimable if t.queue == task.queue and t.priority == best]
            assert peers[0] is task
            assert not (waiting and delivery.started and waiting[0].effective >= task.priority)
            task.place = RUNNING if delivery.started else RESERVED
            task.token = delivery.token
            task.deliveries += 1
        # I5
        assert delivery.deliveries == task.deliveries <= task.max_deliveries
        assert (delivery.yields, delivery.message.retries) == (task.yields, task.retries)
        assert delivery.yieldable == (task.yields < MAX_YIELDS)
        self.deliveries.append(delivery)

    def start(self, data) -> None:
        delivery, task = self.pick(data)
        result = self.bench.transport.start([delivery])
        if result.refused:
            if task is not None:
                assert task.place is RESERVED
                self.refuse(task)
            return
        assert task is not None
        (started,) = result.started
        if task.place is RESERVED:
            late = task.expires_at is not None and task.expires_at <= self.model.now
            assert not late
            assert task.queue not in self.model.paused
        task.place = RUNNING
        self.deliveries.append(started)

    def give_back(self, data) -> None:
        delivery, task = self.pick(data)
        delay = data.draw(delays)
        done = self.bench.transport.yield_reservation(delivery, delay=delay)
        assert done == (task is not None and task.place is RESERVED)
        if done and task is not None:
            task.yields += 1
            task.deliveries -= 1
            task.due_at = self.model.now + delay
            self.model.wait(task)
            self.model.pass_time(self.model.now)

    def settle(self, data) -> None:
        delivery, task = self.pick(data)
        verb, delay = data.draw(st.tuples(st.sampled_from(Verb), delays))
        counted = data.draw(st.booleans())
        state = {Verb.BURY: State.FAILED, Verb.REPORT: State.RUNNING}.get(verb, State.SUCCEEDED)
        record = None if verb in (Verb.RETRY, Verb.RELEASE) else self.bench.record(delivery, state)
        fields = {"delay": delay, "counted": counted, "result": record, "reason": "test"}
        # I3: what is not held changes nothing.
        assert self.bench.settle(delivery, verb, **fields) == (task is not None)
        if task is None:
            return
        now = self.model.now
        if verb is Verb.FINISH:
            self.model.end(task, State.SUCCEEDED)
        elif verb is Verb.BURY:
            self.model.bury(task, State.FAILED)
        elif verb is Verb.RETRY:
            task.retries += 1
            task.deliveries = 0
            task.visible_at = task.due_at = now + delay
            self.model.wait(task)
        elif verb is Verb.RELEASE and counted and task.deliveries >= task.max_deliveries:
            self.model.bury(task, State.DEAD)
        elif verb is Verb.RELEASE:
            task.deliveries -= not counted
            task.due_at = now + delay
            self.model.wait(task)
        self.advance(0.0)

    def extend(self, data) -> None:
        delivery, task = self.pick(data)
        lost = self.bench.transport.extend([delivery], LEASE)
        assert (lost == ()) == (task is not None)

    # -- time, operators --------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.25, 1.0, 5.0]))
    def advance(self, seconds) -> None:
        self.bench.clock.advance(seconds)
        self.bench.sweep()
        self.model.pass_time(self.bench.clock.now())

    @precondition(lambda self: any(map(self.model.held, self.deliveries)))
    @rule()
    def lose_every_lease(self) -> None:
        self.bench.lose_leases()
        self.model.pass_time(self.bench.clock.now())
        for task in list(self.model.live.values()):
            if task.place in (RESERVED, RUNNING):
                task.due_at = self.model.now
                # I4: only now may it be delivered again.
                self.model.lose(task)
        self.advance(0.0)

    @rule(data=st.data())
    def operate(self, data) -> None:
        """What people do, as one rule, and not too often."""
        verbs = [self.revoke, self.pause, self.replay, self.replay]
        data.draw(st.sampled_from(verbs))(data)

    def revoke(self, data) -> None:
        name = data.draw(st.sampled_from([*self.names[-6:], f"m{len(self.names)}"]))
        was = self.model.state(name)
        task = self.model.live.get(name)
        (answer,) = self.bench.transport.operators.revoke([name])
        assert answer.was is was
        assert answer.ended == (task is not None and task.place is not RUNNING)
        if not was.final:
            self.model.marked.add(name)
        if answer.ended and task is not None:
            self.model.end(task, State.REVOKED)

    def pause(self, data) -> None:
        queue = data.draw(st.sampled_from(QUEUES))
        if not self.model.paused:
            self.bench.transport.operators.pause(queue)
            self.model.paused.add(queue)
        else:
            self.resume()

    def resume(self) -> None:
        for queue in sorted(self.model.paused):
            self.bench.transport.operators.resume(queue)
        self.model.paused.clear()

    def replay(self, data) -> None:
        if not self.model.dead:
            return
        priority = data.draw(st.none() | priorities)
        name = data.draw(st.sampled_from(sorted(self.model.dead)))
        task = self.model.dead.pop(name)
        letter = self.bench.transport.operators.dead_letter(name)
        assert letter is not None
        self.bench.transport.operators.replay([letter.number], priority=priority)
        task.priority = task.priority if priority is None else priority
        task.deliveries = task.yields = task.retries = 0
        task.visible_at = task.due_at = now = self.model.now
        if task.expires_at is not None and task.expires_at <= now:
            task.expires_at = None
        self.model.insert(task)

    # -- always -----------------------------------------------------------------------------------

    @invariant()
    def both_say_the_same(self) -> None:
        """I1 and I8: every task is where the model has it, and what has ended stays ended."""
        assert self.bench.peek(QUEUES) == self.model.peek(set(QUEUES))
        for name in self.names[-6:]:
            assert self.bench.state(name) is self.model.state(name), name
        assert sorted(self.bench.dead()) == sorted(self.model.dead)
        rows = self.bench.transport.operators.depth()
        held = sum(t.place in (RESERVED, RUNNING) for t in self.model.live.values())
        assert sum(r.reserved + r.running for r in rows) == held
        assert sum(r.ready + r.scheduled for r in rows) == len(self.model.live) - held

    def drain(self) -> None:
        """I1: in the end every message that was submitted has ended, and nothing is left."""
        self.resume()
        self.lose_every_lease()
        self.advance(1000.0)
        while taken := self.take(set(QUEUES), 4):
            for delivery in taken:
                assert self.bench.finish(delivery)
                self.model.end(self.model.live[delivery.message.task_id], State.SUCCEEDED)
        assert self.bench.transport.operators.depth() == []
        for name in self.names:
            assert self.bench.state(name).final
            assert self.bench.state(name) is self.model.state(name)


@pytest.mark.timeout(300)  # a failure is shrunk first
@pytest.mark.parametrize("kind", list(MAKERS))
def test_every_sequence_of_calls_does_what_the_model_says(kind: str) -> None:
    machine = type(f"{kind}Machine", (TransportMachine,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES[kind],
            stateful_step_count=60,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
