"""Who decides a message's priority: submit > parent > task > queue > config (seed §3.4, DESIGN §4)."""

from __future__ import annotations

from enum import IntEnum

import pytest

from taskmq import App, Config, Priority, QueueConfig
from taskmq.errors import ConfigError, PriorityError
from taskmq.message import Message
from tests.unit.model.conftest import AppMaker


@pytest.fixture
def app(make_app: AppMaker) -> App:
    return make_app(
        Config(
            broker_url="memory://",
            default_priority=-2,
            queues={"email": QueueConfig(priority=3), "plain": QueueConfig()},
        )
    )


def test_config_decides_where_nothing_else_is_set(app: App) -> None:
    @app.task
    def work() -> None: ...

    assert app.message(work).priority == -2


def test_queue_beats_config(app: App) -> None:
    @app.task(queue="email")
    def work() -> None: ...

    assert app.message(work).priority == 3


def test_task_beats_queue(app: App) -> None:
    @app.task(queue="email", priority=Priority.HIGH)
    def work() -> None: ...

    assert app.message(work).priority == 5


def test_parent_beats_task(app: App) -> None:
    @app.task(queue="email", priority=Priority.HIGH)
    def work() -> None: ...

    assert app.message(work, parent_priority=-7).priority == -7


def test_submit_beats_parent(app: App) -> None:
    @app.task(queue="email", priority=Priority.HIGH)
    def work() -> None: ...

    assert app.message(work, parent_priority=-7, priority=Priority.CRITICAL).priority == 9


def test_zero_is_a_priority_that_was_set(app: App) -> None:
    @app.task(queue="email", priority=0)
    def work() -> None: ...

    assert app.message(work).priority == 0
    assert app.message(work, priority=0, parent_priority=4).priority == 0


def test_none_is_the_same_as_leaving_a_priority_out(app: App) -> None:
    @app.task(priority=4)
    def work() -> None: ...

    assert app.message(work, priority=None).priority == 4


def test_the_queue_of_the_call_is_the_one_that_counts(app: App) -> None:
    @app.task(queue="email")
    def work() -> None: ...

    assert app.message(work, queue="plain").priority == -2
    assert app.message(work, queue="unconfigured").priority == -2


def test_a_task_known_only_by_name_takes_the_priority_of_its_queue(app: App) -> None:
    assert app.message("elsewhere.work", queue="email").priority == 3
    assert app.message("elsewhere.work").priority == -2


def test_a_registered_task_called_by_name_keeps_what_it_declares(app: App) -> None:
    @app.task(name="here.work", priority=6)
    def work() -> None: ...

    assert app.message("here.work").priority == 6


def test_an_int_enum_is_stored_as_a_plain_int(app: App) -> None:
    class Urgency(IntEnum):
        NOW = 8

    message = app.message("elsewhere.work", priority=Urgency.NOW)

    assert message.priority == 8
    assert type(message.priority) is int


@pytest.mark.parametrize("value", [10, -10, 255, True, 2.0, "5", [1]])
def test_a_priority_out_of_range_is_refused_at_the_call(app: App, value: object) -> None:
    @app.task(name="some.work")
    def work() -> None: ...

    with pytest.raises(PriorityError, match=r"some\.work") as refused:
        app.message(work, priority=value)  # type: ignore[arg-type]

    assert str(value) in str(refused.value)
    assert "-9" in str(refused.value)
    assert isinstance(refused.value, (ConfigError, ValueError))


@pytest.mark.parametrize("value", [10, -10, True, 2.0, "5"])
def test_a_priority_out_of_range_is_refused_at_the_decorator(app: App, value: object) -> None:
    with pytest.raises(ConfigError, match="priority") as refused:
        app.task(priority=value)(lambda: None)  # type: ignore[call-overload]

    assert not isinstance(refused.value, PriorityError)


@pytest.mark.parametrize("value", [10, -10, True, 2.0, "5"])
def test_a_priority_out_of_range_is_refused_when_the_app_is_built(value: object) -> None:
    with pytest.raises(ConfigError, match="default_priority"):
        App(default_priority=value)
    with pytest.raises(ConfigError, match=r"QueueConfig\.priority"):
        QueueConfig(priority=value)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="urgent_threshold"):
        App(urgent_threshold=value)


def test_delay_takes_a_priority_beside_the_arguments(app: App) -> None:
    @app.task(priority=1)
    def work(to: str) -> None: ...

    sent: list[Message] = []
    app.hooks.before_submit.connect(sent.append)
    work.delay("a", priority=Priority.CRITICAL)
    work.delay("a")
    work.delay(to="a", priority=None)

    assert [m.priority for m in sent] == [9, 1, 1]
    assert all(b"priority" not in m.body for m in sent)


def test_delay_refuses_a_priority_the_function_could_mean(app: App) -> None:
    @app.task
    def work(to: str, priority: int = 1) -> None: ...

    with pytest.raises(ConfigError, match="apply_async"):
        work.delay("a", priority=9)

    message = app.message(work, ("a",), {"priority": 3}, priority=9)
    assert message.priority == 9
    assert b'"priority": 3' in message.body or b'"priority":3' in message.body
