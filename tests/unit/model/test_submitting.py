"""From a call to the store: one message or many, hooks, and nothing stored when something is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from taskmq import App, State
from taskmq.errors import ConfigError, EncodeError, PriorityError, TooLarge, TransportFull
from taskmq.message import Message
from tests.unit.model.conftest import AppMaker


class Batches:
    """What the transport is asked to store, and a fault at one batch."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch, fail_at: int = -1) -> None:
        self.sizes: list[int] = []
        self._submit = app.transport.submit
        self._fail_at = fail_at
        monkeypatch.setattr(app.transport, "submit", self)

    def __call__(self, messages: Sequence[Message]) -> None:
        if len(self.sizes) == self._fail_at:
            raise TransportFull("no room")
        self.sizes.append(len(messages))
        self._submit(messages)


def test_a_submit_that_returned_is_stored(app: App) -> None:
    work = app.task(name="work")(lambda *args: None)

    results = [work.delay(1), work.apply_async((1,)), work.submit((1,)), app.submit("work", (1,))]

    assert [r.state for r in results] == [State.QUEUED] * 4
    assert {r.task for r in results} == {"work"}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"priority": 10}, PriorityError),
        ({"args": ({1, 2},)}, EncodeError),
        ({"args": ("x" * 200,)}, TooLarge),
        ({"queue": ""}, ConfigError),
    ],
)
def test_a_refused_call_stores_nothing(
    make_app: AppMaker,
    monkeypatch: pytest.MonkeyPatch,
    call: dict[str, Any],
    error: type[Exception],
) -> None:
    app = make_app(max_body=100)
    batches = Batches(app, monkeypatch)

    with pytest.raises(error):
        app.submit("work", **call)
    assert batches.sizes == []


class TestMany:
    def test_results_come_in_the_order_of_the_calls(self, app: App) -> None:
        work = app.task(name="work")(lambda *args, **kwargs: None)

        results = app.submit_many(
            [
                work.s(1).set(task_id="a"),
                (work, (2,), {"x": 1}, {"task_id": "b", "priority": 7}),
                (work, [3], None, {"task_id": "c"}),
                ("elsewhere", (), {}, {"task_id": "d"}),
                (work,),
            ]
        )

        assert [r.id for r in results[:4]] == ["a", "b", "c", "d"]
        assert [r.state for r in results] == [State.QUEUED] * 5

    def test_options_hold_where_a_call_does_not_say_otherwise(self, app: App) -> None:
        work = app.task(name="work", priority=1)(lambda *args: None)
        sent: list[Message] = []
        app.hooks.before_submit.connect(sent.append)

        app.submit_many(
            [(work,), (work, (), None, {"priority": 9}), work.s().set(queue="own")],
            priority=4,
            queue="bulk",
        )

        assert [(m.priority, m.queue) for m in sent] == [(4, "bulk"), (9, "bulk"), (4, "own")]

    def test_every_five_hundred_are_one_transaction(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batches = Batches(app, monkeypatch)

        results = app.submit_many(("work", (n,)) for n in range(1201))

        assert batches.sizes == [500, 500, 201]
        assert len({r.id for r in results}) == 1201

    def test_no_call_is_no_transaction(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        batches = Batches(app, monkeypatch)

        assert app.submit_many([]) == []
        assert batches.sizes == []

    def test_one_wrong_call_stores_none(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        batches = Batches(app, monkeypatch)
        calls: list[Any] = [("work", (n,)) for n in range(600)]

        with pytest.raises(PriorityError):
            app.submit_many([*calls, ("work", (), None, {"priority": 99})])
        assert batches.sizes == []

    def test_a_batch_that_fails_leaves_the_earlier_ones_stored(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batches = Batches(app, monkeypatch, fail_at=1)
        ids = [f"t-{n}" for n in range(700)]

        with pytest.raises(TransportFull):
            app.submit_many(("work", (), None, {"task_id": i}) for i in ids)

        assert batches.sizes == [500]
        assert app.result(ids[499]).state is State.QUEUED
        assert app.result(ids[500]).state is State.UNKNOWN

    @pytest.mark.parametrize("call", ["work", 5, (), ("work", (), {}, {}, 1), ("work", (), {}, 5)])
    def test_what_is_no_call_is_refused(self, app: App, call: Any) -> None:
        with pytest.raises(ConfigError, match="submit_many"):
            app.submit_many([call])


class TestHooks:
    def test_they_see_the_message_before_and_after_it_is_stored(self, app: App) -> None:
        seen: list[tuple[str, State]] = []
        app.hooks.before_submit.connect(
            lambda m: seen.append((m.task_id, app.result(m.task_id).state))
        )
        app.hooks.after_submit.connect(
            lambda m: seen.append((m.task_id, app.result(m.task_id).state))
        )
        result = app.submit("work")

        assert seen == [(result.id, State.UNKNOWN), (result.id, State.QUEUED)]

    def test_a_receiver_that_raises_does_not_stop_the_submit(self, app: App) -> None:
        def broken(message: Message) -> None:
            raise RuntimeError("broken")

        app.hooks.before_submit.connect(broken)

        assert app.submit("work").state is State.QUEUED

    def test_after_submit_is_silent_when_nothing_was_stored(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Batches(app, monkeypatch, fail_at=0)
        after: list[Message] = []
        app.hooks.after_submit.connect(after.append)

        with pytest.raises(TransportFull):
            app.submit("work")
        assert after == []


def test_building_a_message_stores_nothing(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = Batches(app, monkeypatch)
    message = app.message("work", (1,), {"b": 2})
    assert batches.sizes == []
    app.publish([message])

    assert app.result(message.task_id).state is State.QUEUED


def test_publishing_a_message_twice_stores_it_once(app: App) -> None:
    message = app.message("work")
    app.publish([message])
    app.publish([message])

    assert sum(d.ready for d in app.transport.operators.depth()) == 1


def test_what_follows_can_be_given_in_its_stored_form(app: App) -> None:
    signature = {"task": "next", "args": [], "kwargs": {}, "options": {}, "immutable": False}

    assert app.message("work", follow={"chain": [signature], "chord": None}).follow == (
        '{"chain":[{"task":"next","args":[],"kwargs":{},"options":{},"immutable":false}]}'
    )
    assert '"callbacks"' in str(app.message("work", link=signature).follow)  # type: ignore[arg-type]
    assert app.message("work", follow={"chain": []}).follow is None
