"""Results: records by task_id, the derived state, waiting, forgetting, retention."""

from __future__ import annotations

import threading

import pytest

from taskmq.message import ResultRecord
from taskmq.states import State
from taskmq.testing.conformance.bench import Bench, Contract


class TestResults(Contract):
    def test_a_record_comes_back_as_it_was_written(self, bench: Bench) -> None:
        now = bench.clock.now()
        record = ResultRecord(
            task_id="a",
            state=State.FAILED,
            body=b'{"exc_type": "E"}',
            content_type="application/x-other",
            traceback="line 1\nline 2 é",
            ended_at=now,
            expires_at=now + 60,
            task="tasks.a",
            worker="w1",
            retries=3,
            parent_id="p",
            children=("c1", "c2"),
            label="CUSTOM",
        )

        bench.transport.results.put([record])

        assert bench.transport.results.get("a") == record

    def test_a_record_of_defaults_comes_back_too(self, bench: Bench) -> None:
        record = ResultRecord(task_id="a", state=State.SUCCEEDED)

        bench.transport.results.put([record])

        assert bench.transport.results.get("a") == record

    def test_nothing_is_known_of_an_unknown_task(self, bench: Bench) -> None:
        assert bench.transport.results.get("nobody") is None
        assert bench.state("nobody") is State.UNKNOWN

    def test_a_later_record_replaces_the_earlier_one(self, bench: Bench) -> None:
        store = bench.transport.results
        store.put([ResultRecord(task_id="a", state=State.RUNNING, body=b"1")])
        store.put([ResultRecord(task_id="a", state=State.SUCCEEDED, body=b"2")])

        record = store.get("a")
        assert record is not None
        assert (record.state, record.body) == (State.SUCCEEDED, b"2")

    def test_forgotten_records_are_gone(self, bench: Bench) -> None:
        store = bench.transport.results
        store.put([ResultRecord(task_id=t, state=State.SUCCEEDED) for t in "abc"])

        store.forget(["a", "c", "nobody"])

        assert [store.get(t) is not None for t in "abc"] == [False, True, False]

    def test_an_expired_record_is_gone(self, bench: Bench) -> None:
        store = bench.transport.results
        now = bench.clock.now()
        store.put(
            [
                ResultRecord(task_id="old", state=State.SUCCEEDED, expires_at=now + 60),
                ResultRecord(task_id="kept", state=State.SUCCEEDED, expires_at=None),
            ]
        )
        bench.clock.advance(61)
        bench.sweep()

        assert store.get("old") is None
        assert store.get("kept") is not None
        assert bench.state("old") is State.UNKNOWN

    def test_the_state_follows_the_message(self, bench: Bench) -> None:
        seen = [bench.state("a")]
        bench.submit("a", eta=bench.clock.now() + 1)
        seen.append(bench.state("a"))
        bench.clock.advance(1)
        held = bench.hold()
        seen.append(bench.state("a"))
        (running,) = bench.transport.start([held]).started
        seen.append(bench.state("a"))
        bench.finish(running)
        seen.append(bench.state("a"))

        assert seen == [
            State.UNKNOWN,
            State.SCHEDULED,
            State.RESERVED,
            State.RUNNING,
            State.SUCCEEDED,
        ]

    def test_progress_does_not_hide_the_state(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        bench.transport.results.put([bench.record(delivery, State.RUNNING, body=b"0.5")])

        assert bench.state("a") is State.RUNNING

    def test_wait_gives_what_is_final_already(self, bench: Bench) -> None:
        store = bench.transport.results
        store.put(
            [
                ResultRecord(task_id="done", state=State.SUCCEEDED),
                ResultRecord(task_id="busy", state=State.RUNNING),
            ]
        )

        assert set(store.wait(["busy", "done", "nobody"], None)) == {"done"}

    @pytest.mark.parametrize("timeout", [0, 0.01])
    def test_wait_ends_at_its_timeout(self, bench: Bench, timeout: float) -> None:
        bench.submit("a")

        assert bench.transport.results.wait(["a"], timeout) == {}

    def test_wait_is_woken_by_a_settle_in_another_thread(self, bench: Bench) -> None:
        bench.submit("a")
        delivery = bench.take()
        got: dict[str, ResultRecord] = {}

        def wait() -> None:
            got.update(bench.transport.results.wait(["a"], None))

        waiter = threading.Thread(target=wait, daemon=True)
        waiter.start()
        bench.finish(delivery, body=b"1")
        waiter.join(10)

        assert not waiter.is_alive()
        assert got["a"].body == b"1"

    def test_results_commit_with_the_settle_where_the_store_says_so(self, bench: Bench) -> None:
        results = bench.transport.results

        assert results.with_messages == bench.transport.capabilities.shared_results
