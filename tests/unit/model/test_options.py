"""Options of tasks and calls: what reaches the message, and that nothing unknown is ignored."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from taskmq import AckMode, App, Config, RetryPolicy
from taskmq.errors import ConfigError, EncodeError
from taskmq.message import ConcurrencyKey, Rate
from taskmq.options import TaskKeywords, TaskOptions
from tests.unit.model.conftest import AppMaker


def test_the_keywords_of_a_task_are_the_options_there_are() -> None:
    assert set(TaskKeywords.__annotations__) - {"name"} == {
        f.name for f in fields(TaskOptions) if f.name != "bind"
    }


def test_an_unknown_task_option_names_the_likely_one(app: App) -> None:
    with pytest.raises(ConfigError, match=r"'rate_limits'.*Did you mean 'rate_limit'"):
        app.task(rate_limits="1/s")  # type: ignore[call-overload]


def test_an_unknown_call_option_names_the_likely_one(app: App) -> None:
    with pytest.raises(ConfigError, match=r"task work.*'count_down'.*Did you mean 'countdown'"):
        app.message("work", count_down=3)  # type: ignore[call-arg]


def test_an_unknown_setting_names_the_likely_one() -> None:
    with pytest.raises(ConfigError, match=r"'poll_intervall'.*Did you mean 'poll_interval'"):
        App(poll_intervall=1)


def test_settings_as_keywords_win_over_the_config() -> None:
    app = App(Config(lease=10, watchdog=20), lease=5)

    assert (app.config.lease, app.config.watchdog) == (5, 20)


def test_a_name_in_place_of_the_config_is_explained() -> None:
    with pytest.raises(ConfigError, match=r"App\(name='proj'\)"):
        App("proj")  # type: ignore[arg-type]


def test_what_the_config_says_reaches_the_message(make_app: AppMaker) -> None:
    app = make_app(default_queue="q", ack="on_start", max_deliveries=2, ignore_result=True)

    message = app.message("work")

    assert message.queue == "q"
    assert message.ack is AckMode.ON_START
    assert message.max_deliveries == 2
    assert message.store_result is False


def test_what_the_task_says_beats_the_config(make_app: AppMaker) -> None:
    app = make_app(default_queue="q", ack="on_start", max_deliveries=2, ignore_result=True)

    @app.task(
        name="work",
        queue="own",
        ack="late",
        max_deliveries=7,
        ignore_result=False,
        time_limit=9,
        soft_time_limit=timedelta(seconds=8),
        result_expires=0,
        rate_limit="10/m",
    )
    def work() -> None: ...

    message = app.message(work)

    assert message.queue == "own"
    assert message.ack is AckMode.LATE
    assert message.max_deliveries == 7
    assert message.store_result is True
    assert (message.time_limit, message.soft_time_limit) == (9, 8)
    assert message.result_expires == 0
    assert message.rate == Rate("work", 6.0)


def test_what_the_call_says_beats_the_task(app: App) -> None:
    @app.task(queue="own", ack="late", max_deliveries=7, ignore_result=True, time_limit=9)
    def work() -> None: ...

    message = app.message(
        work,
        queue="other",
        ack=AckMode.ON_START,
        max_deliveries=1,
        ignore_result=False,
        time_limit=2,
        soft_time_limit=1,
        result_expires=5,
        headers={"tenant": "a"},
        task_id="mine",
        parent_id="p",
        root_id="r",
        retries=3,
    )

    assert message.queue == "other"
    assert message.ack is AckMode.ON_START
    assert message.max_deliveries == 1
    assert message.store_result is True
    assert (message.time_limit, message.soft_time_limit) == (2, 1)
    assert message.result_expires == 5
    assert message.headers == {"tenant": "a"}
    assert (message.task_id, message.parent_id, message.root_id) == ("mine", "p", "r")
    assert message.retries == 3


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("queue", ""),
        ("queue", 3),
        ("ack", "never"),
        ("retry", 3),
        ("retry_priority", "raise"),
        ("time_limit", 0),
        ("time_limit", "5"),
        ("soft_time_limit", float("nan")),
        ("rate_limit", "often"),
        ("rate_limit", -1),
        ("concurrency_key", ""),
        ("concurrency_key", 5),
        ("concurrency_limit", 0),
        ("max_deliveries", 0),
        ("max_deliveries", True),
        ("max_deliveries", 2**31),
        ("expires", 0),
        ("ignore_result", "yes"),
        ("result_expires", -1),
        ("serializer", "jsonn"),
        ("bind", 1),
    ],
)
def test_a_bad_task_option_is_refused_naming_it(app: App, option: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=option):
        app.task(**{option: value})(lambda: None)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("queue", ""),
        ("task_id", ""),
        ("task_id", 5),
        ("message_id", b"x"),
        ("headers", ["a"]),
        ("headers", {1: 2}),
        ("max_deliveries", 0),
        ("concurrency_key", 4),
        ("ack", 1),
        ("time_limit", -1),
        ("ignore_result", 0),
        ("result_expires", "1d"),
        ("serializer", "xml"),
        ("retries", -1),
        ("link", "not a signature"),
        ("link_error", [1]),
    ],
)
def test_a_bad_call_option_is_refused_naming_task_and_option(
    app: App, option: str, value: Any
) -> None:
    with pytest.raises(ConfigError, match=f"task work: {option}"):
        app.message("work", **{option: value})


@pytest.mark.parametrize("value", [object(), float("nan"), {"a": {1, 2}}])
def test_headers_that_are_no_json_are_refused_at_the_call(app: App, value: object) -> None:
    with pytest.raises(EncodeError, match="task work: headers"):
        app.message("work", headers={"x": value})


def test_a_header_cannot_be_changed_after_the_call(app: App) -> None:
    headers = {"a": 1}
    message = app.message("work", headers=headers)
    headers["a"] = 2

    assert message.headers == {"a": 1}


def test_arguments_must_come_as_a_list_and_a_mapping(app: App) -> None:
    with pytest.raises(ConfigError, match="args is a list or a tuple, got 'ab'"):
        app.message("work", "ab")
    with pytest.raises(ConfigError, match="kwargs is a mapping"):
        app.message("work", (), [("a", 1)])  # type: ignore[arg-type]


def test_a_serializer_that_would_be_refused_is_refused_at_the_declaration(app: App) -> None:
    with pytest.raises(ConfigError, match="accept_content"):
        app.task(serializer="pickle")(lambda: None)


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "x" * 256, "naïve!", 5])
def test_a_task_name_is_made_of_letters_digits_and_a_few_signs(app: App, name: Any) -> None:
    with pytest.raises(ConfigError):
        app.task(name=name)(lambda: None) if name else app.message(name)


class TestConcurrencyKey:
    def test_template_takes_arguments_by_name_however_they_are_passed(self, app: App) -> None:
        @app.task(concurrency_key="account:{account_id}:{kind}", concurrency_limit=2)
        def sync(account_id: int, *, kind: str = "full") -> None: ...

        assert app.message(sync, (7,)).concurrency == ConcurrencyKey("account:7:full", 2)
        assert app.message(sync, (), {"account_id": 8, "kind": "x"}).concurrency == ConcurrencyKey(
            "account:8:x", 2
        )

    def test_template_reaches_into_extra_keywords(self, app: App) -> None:
        @app.task(concurrency_key="{tenant}")
        def sync(**options: str) -> None: ...

        assert app.message(sync, (), {"tenant": "a"}).concurrency == ConcurrencyKey("a", 1)
        with pytest.raises(ConfigError, match="tenant"):
            app.message(sync, (), {"other": "a"})

    def test_callable_gets_the_arguments_and_may_decline(self, app: App) -> None:
        @app.task(concurrency_key=lambda n: f"even:{n}" if n % 2 == 0 else None)
        def work(n: int) -> None: ...

        assert app.message(work, (4,)).concurrency == ConcurrencyKey("even:4", 1)
        assert app.message(work, (5,)).concurrency is None

    def test_call_overrides_the_task(self, app: App) -> None:
        @app.task(concurrency_key="a:{n}")
        def work(n: int) -> None: ...

        message = app.message(work, (4,), concurrency_key="b:{n}", concurrency_limit=3)

        assert message.concurrency == ConcurrencyKey("b:4", 3)

    def test_a_name_elsewhere_takes_the_key_as_written(self, app: App) -> None:
        assert app.message("elsewhere", (4,), concurrency_key="b:{n}").concurrency == (
            ConcurrencyKey("b:{n}", 1)
        )
        with pytest.raises(ConfigError, match="registered here"):
            app.message("elsewhere", (4,), concurrency_key=lambda n: n)

    def test_template_naming_no_parameter_fails_at_the_declaration(self, app: App) -> None:
        with pytest.raises(ConfigError, match=r"'acount_id'.*Did you mean 'account_id'"):

            @app.task(concurrency_key="{acount_id}")
            def sync(account_id: int) -> None: ...

    def test_broken_template_fails_at_the_declaration(self, app: App) -> None:
        with pytest.raises(ConfigError, match="concurrency_key"):
            app.task(concurrency_key="{a")(lambda a: None)

    @pytest.mark.parametrize("value", ["", 5, b"x"])
    def test_a_key_that_is_no_text_is_refused_at_the_call(self, app: App, value: object) -> None:
        @app.task(concurrency_key=lambda: value)  # type: ignore[arg-type]
        def work() -> None: ...

        with pytest.raises(ConfigError, match="concurrency_key gave"):
            app.message(work)


def test_a_retry_policy_is_kept_on_the_task(app: App) -> None:
    policy = RetryPolicy(max_retries=9)

    assert app.task(retry=policy)(lambda: None).options.retry is policy
