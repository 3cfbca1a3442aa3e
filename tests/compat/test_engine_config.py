"""What Celery's settings mean to the engine."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from taskmq.compat import Celery
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.config import Config, QueueConfig
from taskmq.errors import ConfigError
from taskmq.states import AckMode
from taskmq.worker.options import WorkerOptions
from taskmq.worker.rules import resolve


def config_of(**settings: Any) -> Config:
    """The native configuration of these settings."""
    settings.setdefault("broker_url", "memory://config")
    return Celery(set_as_current=False, **settings).engine.config


def test_project_without_a_broker_gets_a_file_beside_it() -> None:
    app = Celery(set_as_current=False)

    assert app.engine.config.broker_url == "sqlite:///taskmq.db"


@pytest.mark.parametrize(
    ("late", "reject", "mode"),
    [
        (False, None, AckMode.ON_START),
        (False, True, AckMode.ON_START),
        (True, None, AckMode.LATE),
        (True, False, AckMode.LATE),
        (True, True, AckMode.ON_FINISH),
    ],
)
def test_acknowledgement_follows_celerys_two_options(
    late: bool, reject: bool | None, mode: AckMode
) -> None:
    assert config_of(task_acks_late=late, task_reject_on_worker_lost=reject).ack is mode

    app = Celery(set_as_current=False, broker="memory://ack")
    task = app.task(acks_late=late, reject_on_worker_lost=reject)(lambda: None)
    assert task.adapter.options.ack is mode


def test_prefetch_counts_only_where_the_project_sets_it() -> None:
    def held(slots: int, **settings: Any) -> int:
        options = WorkerOptions(concurrency=slots, app_spec="proj")
        return resolve(config_of(**settings), options, "w").prefetch

    # The slots a worker really has, whatever the settings say of them.
    assert held(8, worker_concurrency=3) == 8
    assert held(8, worker_concurrency=3, worker_prefetch_multiplier=1) == 8
    assert held(8, worker_prefetch_multiplier=4) == 32
    assert held(8, worker_prefetch_multiplier=0) == 8
    assert held(8, worker_prefetch_multiplier=4, worker_disable_prefetch=True) == 8
    with pytest.raises(ImproperlyConfigured, match="worker_prefetch_multiplier"):
        config_of(worker_prefetch_multiplier=-1)


def test_limits_expiry_and_drain_are_celerys() -> None:
    config = config_of(
        task_time_limit=30,
        task_soft_time_limit=20,
        result_expires=timedelta(hours=2),
        worker_max_tasks_per_child=7,
        task_ignore_result=True,
        worker_send_task_events=True,
    )

    assert (config.time_limit, config.soft_time_limit) == (30, 20)
    assert config.result_expires == 7200
    assert config.max_tasks_per_child == 7
    assert config.ignore_result is True
    assert config.events is True
    assert config.drain_timeout is None
    assert config.max_body == 64 * 1024 * 1024


@pytest.mark.parametrize("value", [None, 0])
def test_results_without_an_expiry_are_kept_for_ever(value: Any) -> None:
    assert config_of(result_expires=value).result_expires is None


def test_queues_are_those_of_the_project_and_the_default_one() -> None:
    config = config_of(task_queues=["a", "b"], task_default_queue="main")

    assert set(config.queues) == {"a", "b", "main"}
    assert config.default_queue == "main"


def test_settings_of_the_engine_are_reached_by_their_prefix() -> None:
    config = config_of(
        taskmq_poll_interval=0.01,
        task_queues=["email"],
        taskmq_queues={"email": {"weight": 3}, "bulk": QueueConfig(priority=-5)},
    )

    assert config.poll_interval == 0.01
    assert config.queues["email"].weight == 3
    assert config.queues["bulk"].priority == -5
    with pytest.raises(ImproperlyConfigured, match="Did you mean 'poll_interval'"):
        config_of(taskmq_pol_interval=1)
    with pytest.raises(ImproperlyConfigured, match="wieght"):
        config_of(taskmq_queues={"email": {"wieght": 3}})


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost:6379/0",
        "amqp://guest@localhost//",
        "pyamqp://",
        "sqs://",
        "sqla+sqlite:///x.db",
        "memory://a;memory://b",
    ],
)
def test_broker_that_is_not_there_yet_is_named_with_what_to_use(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="sqlite:///"):
        config_of(broker_url=url)


def test_broker_by_host_and_transport_is_not_there_yet() -> None:
    with pytest.raises(ImproperlyConfigured, match="broker_host"):
        config_of(broker_url=None, broker_host="localhost")


def test_reading_and_writing_in_two_places_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="broker_read_url"):
        config_of(broker_read_url="memory://other")
    assert config_of(broker_url=None, broker_write_url="memory://one").broker_url == "memory://one"


def test_person_who_starts_it_says_where_whatever_the_project_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKMQ_BROKER_URL", "memory://elsewhere")

    config = config_of(broker_url="redis://localhost", result_backend="redis://localhost")

    assert (config.broker_url, config.result_url) == ("memory://elsewhere", None)


@pytest.mark.parametrize("backend", [None, "rpc://", "cache+memory://", "memory://config"])
def test_results_are_kept_beside_the_messages(backend: str | None) -> None:
    assert config_of(result_backend=backend).result_url is None


def test_results_may_be_in_another_file_or_nowhere() -> None:
    assert config_of(result_backend="sqlite:///results.db").result_url == "sqlite:///results.db"
    assert config_of(result_backend="disabled://").result_url == "disabled"


@pytest.mark.parametrize("backend", ["redis://", "db+sqlite:///r.db", "django-db", object()])
def test_result_backend_that_is_not_there_yet_is_named(backend: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match="not there yet"):
        config_of(result_backend=backend)


def test_serializer_must_be_one_that_workers_accept() -> None:
    assert config_of(accept_content=["application/json", "pickle"]).accept_content == (
        "json",
        "pickle",
    )
    with pytest.raises(ImproperlyConfigured, match="accept_content"):
        config_of(task_serializer="pickle")
    with pytest.raises(ImproperlyConfigured, match="xml"):
        config_of(task_serializer="xml")


@pytest.mark.parametrize("priority", [10, -10, "high", True])
def test_default_priority_out_of_range_is_refused(priority: Any) -> None:
    with pytest.raises(ConfigError, match="task_default_priority"):
        config_of(task_default_priority=priority)


def test_changed_setting_reaches_the_engine_at_its_next_use() -> None:
    app = Celery(set_as_current=False, broker="memory://one")
    task = app.task(lambda: None)
    first = app.engine

    app.conf.broker_url = "memory://two"

    assert app.engine is not first
    assert app.engine.config.broker_url == "memory://two"
    assert task.name in app.engine.registry


def test_setting_the_engine_does_not_know_leaves_it_as_it_is() -> None:
    app = Celery(set_as_current=False, broker="memory://one")
    first = app.engine

    app.conf.task_always_eager = True

    assert app.engine is first


def test_settings_are_worked_out_once_and_not_at_every_call() -> None:
    app = Celery(set_as_current=False, broker="memory://once")
    task = app.task(lambda: None)
    task.delay()

    with mock.patch("taskmq.compat.app.base.engine_config") as worked_out:
        task.delay()
        task.delay()
    assert not worked_out.called


def test_task_that_is_submitted_natively_goes_where_the_project_routes_it() -> None:
    app = Celery(set_as_current=False, broker="memory://native", task_routes={"feed.*": "feeds"})
    app.task(name="feed.one")(lambda: None)
    app.task(name="own", queue="mine")(lambda: None)

    assert app.engine.message("feed.one").queue == "feeds"
    assert app.engine.message("own").queue == "mine"


def test_engine_options_of_a_task_are_its_attributes() -> None:
    app = Celery(set_as_current=False, broker="memory://options", task_default_rate_limit="5/s")

    @app.task(priority=4, time_limit=9, soft_time_limit=8, ignore_result=True, serializer="json")
    def job() -> None: ...

    options = job.adapter.options
    assert (options.priority, options.time_limit, options.soft_time_limit) == (4, 9, 8)
    assert options.ignore_result is True
    assert options.rate_limit == "5/s"

    app.conf.worker_disable_rate_limits = True
    app.conf.broker_url = "memory://options-2"
    assert job.adapter.options.rate_limit is None
