"""What a caller learns of a task: its states, its value, its error, and when there is nothing to wait for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from taskmq import App, State
from taskmq.clock import FakeClock
from taskmq.codec import encode_failure
from taskmq.errors import (
    ConfigError,
    RemoteError,
    ResultError,
    ResultTimeout,
    ResultUnavailable,
    TaskExpired,
    TaskRevoked,
)
from taskmq.message import ResultRecord
from taskmq.result import Result
from taskmq.transports.base import Outcome, Verb
from taskmq.transports.memory import MemoryTransport
from tests.unit.model.conftest import AppMaker
from tests.unit.model.runner import Runner


class OurError(Exception):
    """Defined beside a task, so it is rebuilt."""


@pytest.fixture
def runner(app: App) -> Runner:
    return Runner(app)


def ended(app: App, state: State, body: bytes | None = None) -> Result[Any]:
    """The result of a task that ended so."""
    app.results.put([ResultRecord(task_id="t", state=state, body=body)])
    return app.result("t")


class TestStates:
    def test_unknown_and_queued_differ(self, app: App) -> None:
        assert app.result("nobody").state is State.UNKNOWN
        assert not app.result("nobody").exists()
        result = app.submit("work")
        assert result.state is State.QUEUED
        assert result.exists()

    def test_each_stage_has_its_state(self, app: App, runner: Runner, clock: FakeClock) -> None:
        app.task(name="work")(lambda: 5)
        result = app.submit("work", countdown=10)
        states = [result.state]
        clock.advance(10)
        states.append(result.state)
        delivery = runner.take()
        assert delivery is not None
        states.append(result.state)
        assert not result.ready()
        app.transport.settle([runner.outcome(delivery)])
        states.append(result.state)

        assert states == [State.SCHEDULED, State.QUEUED, State.RUNNING, State.SUCCEEDED]
        assert result.ready()
        assert result.get(timeout=0) == 5

    def test_expired(self, app: App, clock: FakeClock) -> None:
        result = app.submit("work", expires=10)
        clock.advance(11)

        assert result.state is State.EXPIRED
        with pytest.raises(TaskExpired):
            result.get(timeout=0)

    def test_revoked(self, app: App, runner: Runner) -> None:
        result = app.submit("work")

        assert result.revoke(reason="no longer needed") is State.QUEUED
        assert result.state is State.REVOKED
        assert runner.take() is None
        with pytest.raises(TaskRevoked, match="no longer needed"):
            result.get(timeout=0)

    def test_terminate_tells_the_workers_too(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[tuple[Any, ...]] = []
        monkeypatch.setattr(
            app.transport.coordination, "send", lambda *args, **kwargs: sent.append(args)
        )
        result = app.submit("work")
        result.revoke()
        assert sent == []
        result.revoke(terminate=True, reason="too slow")

        arguments = {"task_ids": [result.id], "terminate": True, "reason": "too slow"}
        assert sent == [("revoke", arguments)]

    def test_several_are_revoked_by_a_list(self, app: App) -> None:
        one, two = app.submit("work"), app.submit("work")

        assert [r.ended for r in app.revoke([one.id, two.id])] == [True, True]
        with pytest.raises(ConfigError, match="a list of task ids"):
            app.revoke(one.id)

    def test_forgotten(self, app: App, runner: Runner) -> None:
        app.task(name="work")(lambda: 5)
        result = app.submit("work")
        runner.run()
        result.forget()

        assert result.state is State.UNKNOWN
        assert result.record() is None


class TestGet:
    def test_zero_looks_once(self, app: App) -> None:
        with pytest.raises(ResultTimeout, match=r"after 0 s; its state is queued") as timeout:
            app.submit("work").get(timeout=0)

        assert isinstance(timeout.value, TimeoutError)

    def test_none_is_a_value(self, app: App, runner: Runner) -> None:
        app.task(name="work")(lambda: None)
        result = app.submit("work")
        runner.run()

        assert result.get(timeout=0) is None

    def test_typed_values_come_back(self, app: App, runner: Runner) -> None:
        app.task(name="work")(lambda: {"raw": b"\x00", "list": (1, 2)})
        result = app.submit("work")
        runner.run()

        assert result.get(timeout=0) == {"raw": b"\x00", "list": [1, 2]}

    @pytest.mark.parametrize("error", [ValueError("boom", 2), OurError("ours"), KeyError("k")])
    def test_a_known_exception_is_raised_again(
        self, app: App, runner: Runner, error: Exception
    ) -> None:
        def raises() -> None:
            raise error

        app.task(name="work")(raises)
        result = app.submit("work")
        runner.run()

        with pytest.raises(type(error)) as raised:
            result.get(timeout=0)
        assert raised.value.args == error.args
        returned: Any = result.get(timeout=0, propagate=False)
        assert type(returned) is type(error)

    def test_a_class_that_is_not_ours_comes_as_remote_error(self, app: App) -> None:
        stranger = encode_failure(threading.BrokenBarrierError("x"))

        with pytest.raises(RemoteError, match=r"threading\.BrokenBarrierError") as raised:
            ended(app, State.FAILED, stranger).get(timeout=0)
        assert raised.value.exc_type == "BrokenBarrierError"

    @pytest.mark.parametrize(
        ("state", "error"),
        [(State.REVOKED, TaskRevoked), (State.EXPIRED, TaskExpired), (State.DEAD, ResultError)],
    )
    def test_an_end_without_words_has_an_error_too(
        self, app: App, state: State, error: type[Exception]
    ) -> None:
        with pytest.raises(error, match="task t "):
            ended(app, state).get(timeout=0)

    @pytest.mark.parametrize("timeout", [-1, float("nan"), "5", True])
    def test_a_timeout_that_is_none_is_refused(self, app: App, timeout: Any) -> None:
        from taskmq.workflow import group

        work = app.task(name="work")(lambda: None)
        for result in (work.delay(), group(work.s()).apply_async()):
            with pytest.raises(ConfigError, match="timeout"):
                result.get(timeout)

    def test_an_ignored_result_is_not_waited_for(self, app: App, runner: Runner) -> None:
        app.task(name="work")(lambda: 5)
        result = app.submit("work", ignore_result=True)
        runner.run()

        with pytest.raises(ResultError, match="ignore_result"):
            result.get()

    def test_a_forgotten_result_ends_the_wait(
        self, app: App, runner: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("taskmq.result._LOOK_EVERY", 0.01)
        app.task(name="work")(lambda: 5)
        result = app.submit("work")
        runner.run()
        result.forget()

        with pytest.raises(ResultError, match="neither a message nor a result"):
            result.get()

    def test_a_late_step_whose_end_was_forgotten_ends_the_wait(
        self, app: App, runner: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("taskmq.result._LOOK_EVERY", 0.01)
        work = app.task(name="work")(lambda *args: 5)
        result = (work.s() | work.s()).apply_async()
        with pytest.raises(ResultTimeout):
            result.get(timeout=0.05)
        runner.run()
        result.forget()

        with pytest.raises(ResultError, match="neither a message nor a result"):
            result.get()

    def test_an_unavailable_store_is_passed_on(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def down(*args: Any) -> Any:
            raise ResultUnavailable("down")

        result = app.submit("work")
        monkeypatch.setattr(app.results, "wait", down)

        with pytest.raises(ResultUnavailable):
            result.get()

    def test_a_waiting_thread_is_woken(self, app: App, runner: Runner) -> None:
        app.task(name="work")(lambda: 5)
        result = app.submit("work")
        got: list[int] = []
        thread = threading.Thread(target=lambda: got.append(result.get()))
        thread.start()
        runner.run()
        thread.join(10)

        assert got == [5]

    def test_waiting_inside_a_task_is_logged_once_per_run(
        self, app: App, runner: Runner, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING, "taskmq.result")
        other = ended(app, State.SUCCEEDED, b"1")
        app.task(name="work")(lambda: other.get() + other.get())
        result = app.submit("work")
        runner.run()

        assert result.get() == 2
        assert [r.message.split(" waits")[0] for r in caplog.records] == [f"task work[{result.id}]"]


class TestProgress:
    def test_the_last_value_is_shown_while_it_runs(self, app: App, runner: Runner) -> None:
        app.task(name="work")(lambda: 5)
        result = app.submit("work")
        assert result.progress is None
        delivery = runner.take()
        assert delivery is not None
        record = ResultRecord(
            task_id=result.id, state=State.RUNNING, body=b'{"done":3}', label="reading"
        )
        app.transport.settle([Outcome(delivery=delivery, verb=Verb.REPORT, result=record)])

        assert result.progress == {"done": 3}
        assert result.state is State.RUNNING
        app.transport.settle([runner.outcome(delivery)])
        assert result.progress is None

    @pytest.mark.parametrize("state", [State.RETRYING, State.FAILED])
    def test_a_failure_is_no_progress(self, app: App, state: State) -> None:
        assert ended(app, state, encode_failure(ValueError("x"))).progress is None


class TestStoreElsewhere:
    @pytest.fixture
    def elsewhere(self, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
        """An app whose results are in a store of their own."""
        messages, results = MemoryTransport(clock=clock), MemoryTransport(clock=clock)
        urls = {"memory://messages": messages, "memory://results": results}
        monkeypatch.setattr(
            "taskmq.transports.urls.open_transport", lambda url, *args, **kwargs: urls[url]
        )
        app = App(
            broker_url="memory://messages",
            result_url="memory://results",
            clock=clock,
            random=Random(1),
        )
        yield app
        app.close()

    def test_it_is_a_store_of_its_own(self, elsewhere: App) -> None:
        assert not elsewhere.results_with_messages
        assert elsewhere.results is not elsewhere.transport.results

    def test_an_unfinished_state_comes_from_the_messages(self, elsewhere: App) -> None:
        result = elsewhere.submit("work")

        assert result.state is State.QUEUED
        elsewhere.results.put([ResultRecord(task_id=result.id, state=State.RUNNING, body=b"1")])
        assert result.state is State.QUEUED
        assert result.progress == 1

    def test_a_final_state_comes_from_the_results(self, elsewhere: App) -> None:
        result = elsewhere.submit("work")
        elsewhere.results.put([ResultRecord(task_id=result.id, state=State.SUCCEEDED, body=b"1")])

        assert result.state is State.SUCCEEDED
        assert result.get(timeout=0) == 1


def test_results_beside_the_messages_are_the_default(app: App) -> None:
    assert app.results_with_messages
    assert app.results is app.transport.results


def test_disabled_results_are_neither_stored_nor_waited_for(make_app: AppMaker) -> None:
    app = make_app(result_url="disabled")
    work = app.task(name="work", ignore_result=False)(lambda: 5)

    assert app.message(work).store_result is False
    assert app.message(work, ignore_result=False).store_result is False
    for result in (work.delay(), app.result("any"), work.s().apply_async()):
        with pytest.raises(ResultError, match="keeps no result"):
            result.get()


@pytest.mark.parametrize("task_id", ["", None, 5])
def test_a_result_needs_an_id(app: App, task_id: Any) -> None:
    with pytest.raises(ConfigError, match="task id"):
        app.result(task_id)


def test_results_are_equal_by_their_id(app: App) -> None:
    assert app.result("a") == app.result("a") != app.result("b")
    assert len({app.result("a"), app.result("a")}) == 1
