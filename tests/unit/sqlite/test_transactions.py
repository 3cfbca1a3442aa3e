"""How many transactions a verb takes, and what one that breaks leaves behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taskmq.errors import EncodeError
from taskmq.message import ConcurrencyKey
from taskmq.policy.following import ChordPart, Consequence
from taskmq.states import State
from taskmq.transports.base import Outcome, QueueShare, Verb


@pytest.fixture
def locks(bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each time the write lock is taken."""
    taken: list[str] = []
    lock = bench.transport._store._lock
    real = lock.acquire

    def acquire() -> None:
        taken.append("lock")
        real()

    monkeypatch.setattr(lock, "acquire", acquire)
    return taken


def test_a_turn_that_settles_and_reserves_is_one_transaction(bench, locks) -> None:
    bench.submit(*[f"m{n}" for n in range(8)])
    held = bench.reserve(4)
    locks.clear()

    turn = bench.transport.turn([bench.succeeded(d) for d in held], bench.request(4))

    assert len(turn.deliveries) == 4
    assert locks == ["lock"]


@pytest.mark.parametrize("held", [0, 3])
def test_an_idle_turn_takes_no_lock(bench, locks, held: int) -> None:
    bench.submit("later", eta=bench.clock.now() + 9)
    bench.submit("elsewhere", queue="other")
    bench.submit("paused", queue="p")
    bench.transport.operators.pause("p")
    bench.submit(*[f"held{n}" for n in range(held)])
    bench.reserve(held)
    locks.clear()

    turn = bench.transport.turn((), bench.request(2, queues=("q", "p", "never")))

    assert turn.deliveries == ()
    assert locks == []


def test_a_full_worker_takes_no_lock(bench, locks) -> None:
    bench.submit("a")
    locks.clear()

    assert bench.transport.turn((), bench.request(0)).deliveries == ()
    assert locks == []


def test_duties_with_nothing_to_do_take_no_lock(bench, locks) -> None:
    bench.submit("a")
    bench.take()
    coordination = bench.transport.coordination
    coordination.take_duty("reap", "other", 60)
    bench.transport.operators.queues()
    locks.clear()

    assert coordination.reap().done == 0
    assert coordination.sweep().done == 0
    assert coordination.commands("w1") == []
    assert coordination.replies("nobody") == []
    assert not coordination.take_duty("reap", "w1", 60)
    assert locks == []


# -- idempotence ----------------------------------------------------------------------------------


def test_a_submit_repeated_after_the_task_has_finished_changes_nothing(bench) -> None:
    (message,) = bench.submit("a")
    bench.finish(bench.take())

    bench.transport.submit([message])
    bench.transport.submit([message, bench.message("b")])

    assert bench.drain() == ["b"]
    assert bench.state("a") is State.SUCCEEDED


def test_a_submit_repeated_after_the_task_was_buried_changes_nothing(bench) -> None:
    (message,) = bench.submit("a")
    bench.settle(bench.take(), Verb.BURY, reason="bad")

    bench.transport.submit([message])
    bench.transport.submit([message, message])

    assert bench.drain() == []
    assert bench.dead() == ["a"]


def test_a_reused_task_id_is_another_message(bench) -> None:
    bench.submit("a")
    bench.finish(bench.take())

    bench.transport.submit([replace(bench.message("second"), task_id="a")])

    assert bench.state("a") is State.QUEUED
    assert bench.drain() == ["a"]


def test_one_message_twice_in_a_batch_is_stored_once(bench) -> None:
    message = bench.message("a")

    bench.transport.submit([message, message, bench.message("b")])

    assert bench.drain() == ["a", "b"]


def test_a_step_ended_with_its_predecessor_runs_after_all_when_that_is_replayed(bench) -> None:
    bench.submit("first")
    step = bench.message("second")
    lost = bench.record(bench.take(), State.FAILED)
    bench.transport.results.put([replace(lost, task_id="second")])
    bench.lose_leases()

    bench.finish(bench.take(), Consequence(submits=(step,)))

    assert bench.state("second") is State.QUEUED
    assert bench.transport.results.get("second") is None
    assert bench.drain() == ["second"]


# -- one bad outcome ------------------------------------------------------------------------------


def test_an_outcome_that_cannot_be_stored_ends_as_a_failure_and_spares_the_others(bench) -> None:
    bench.submit("good", "bad", "also good")
    good, bad, also = bench.reserve(3)
    broken = bench.succeeded(bad, worker="lone \ud800 surrogate")

    lost = bench.transport.settle([bench.succeeded(good), broken, bench.succeeded(also)])

    assert lost == ()
    assert [bench.state(name) for name in ("good", "bad", "also good")] == [
        State.SUCCEEDED,
        State.FAILED,
        State.SUCCEEDED,
    ]
    record = bench.transport.results.get("bad")
    assert record is not None
    assert record.body is not None
    assert b"surrogate" in record.body


def test_what_follows_an_outcome_that_cannot_be_stored_is_not_stored_either(bench) -> None:
    bench.submit("a")
    bad = bench.message("step", queue="made by it", retries=2**64)
    good = bench.message("before it")

    bench.finish(bench.take(), Consequence(submits=(good, bad)))

    assert bench.state("a") is State.FAILED
    assert bench.state("before it") is State.UNKNOWN
    assert "made by it" not in [info.name for info in bench.transport.operators.queues()]
    bench.submit("later", queue="made by it")
    assert bench.drain(queues=["made by it"]) == ["later"]


def test_a_body_too_large_for_a_column_is_the_callers_fault(bench) -> None:
    bench.make(max_body=3_000_000_000)
    with pytest.raises(EncodeError):
        bench.submit("a", task="\ud800")

    assert bench.drain() == []


# -- chords and keys ------------------------------------------------------------------------------


def part(bench, index: int, size: int = 2) -> Consequence:
    then = bench.message("body", body=b"")
    move = ChordPart(
        key="c", index=index, size=size, part=b"%d" % index, then=then, prefix=b"[[", suffix=b"]]"
    )
    return Consequence(chords=(move,))


def test_parts_of_a_chord_that_commit_together_complete_it_once(bench) -> None:
    bench.submit("a", "b")
    first, second = bench.reserve(2)

    outcomes = [bench.succeeded(second, part(bench, 1)), bench.succeeded(first, part(bench, 0))]
    turn = bench.transport.turn(outcomes, bench.request())

    (body,) = turn.deliveries
    assert body.message.body == b"[[0,1]]"


def test_an_abandoned_chord_is_forgotten_some_day_with_its_parts(bench) -> None:
    bench.submit("a")
    bench.finish(bench.take(), part(bench, 0))
    store = bench.transport._store

    def rows():
        return store.read(
            lambda c: c.execute(
                "SELECT (SELECT count(*) FROM chord) + (SELECT count(*) FROM chord_part)"
            ).fetchall()[0][0]
        )

    bench.clock.advance(86_400 * 2)
    bench.sweep()
    assert rows() == 2
    bench.clock.advance(86_400 * 30)
    bench.sweep()
    assert rows() == 0


def test_a_purge_of_a_key_leaves_no_holder_behind(bench) -> None:
    bench.submit("a", "b", "c", concurrency=ConcurrencyKey("k", 1))
    bench.submit("other", queue="o", concurrency=ConcurrencyKey("k", 1))

    assert bench.transport.operators.purge("q") == 3
    assert bench.drain(queues=["o"]) == ["other"]


# -- other processes' queues ----------------------------------------------------------------------


def test_lanes_and_pauses_made_elsewhere_are_seen_at_once(bench) -> None:
    first = bench.transport
    assert bench.reserve() == []
    second = type(first)(first.path, clock=bench.clock)
    second.open()
    second.submit([bench.message("a"), bench.message("b", queue="new")])

    assert first.peek_max_priority([QueueShare("new")]) == 0
    assert [d.message.task_id for d in bench.reserve(2, queues=("q", "new"))] == ["a", "b"]

    second.submit([bench.message("c")])
    second.operators.pause("q")
    assert bench.reserve() == []
    assert bench.peek() is None
    second.operators.resume("q")
    assert bench.drain() == ["c"]
    second.close()


def test_an_unfinished_outcome_is_an_outcome(bench) -> None:
    """REPORT keeps the delivery, whatever else the turn does."""
    bench.submit("a")
    held = bench.take()
    record = bench.record(held, State.RUNNING, body=b"1")

    turn = bench.transport.turn(
        [Outcome(delivery=held, verb=Verb.REPORT, result=record)], bench.request()
    )

    assert turn.lost == ()
    assert bench.transport.results.get("a") == record
    assert bench.state("a") is State.RUNNING
