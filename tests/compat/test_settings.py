"""`app.conf`: one setting in all of its spellings, and where its value comes from."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from taskmq.compat import Celery
from taskmq.compat.app.defaults import OPTIONS
from taskmq.compat.exceptions import ImproperlyConfigured


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda o: o.name)
def test_setting_is_one_under_its_new_and_all_its_old_names(option: Any) -> None:
    for old in option.old:
        app = Celery(set_as_current=False)
        app.config_from_object({old: "value"})
        assert app.conf[option.name] == "value"
        assert getattr(app.conf, old) == "value"

        app = Celery(set_as_current=False)
        app.conf[old] = "written"
        assert app.conf[option.name] == "written"


def test_default_of_a_setting_is_celerys() -> None:
    conf = Celery(set_as_current=False).conf

    assert conf.task_default_queue == "celery"
    assert conf.worker_prefetch_multiplier == 4
    assert conf.accept_content == ["json"]
    assert conf.CELERY_ALWAYS_EAGER is False


def test_mutable_default_belongs_to_one_app() -> None:
    one, two = Celery(set_as_current=False), Celery(set_as_current=False)

    one.conf.beat_schedule["entry"] = {}

    assert two.conf.beat_schedule == {}


def test_namespace_reads_the_new_names_in_capitals() -> None:
    settings = SimpleNamespace(
        CELERY_TASK_ALWAYS_EAGER=True, CELERY_BROKER_URL="memory://", CELERY_ONCE=1, BROKER_URL="no"
    )
    app = Celery(set_as_current=False)
    app.config_from_object(settings, namespace="CELERY")

    assert app.conf.task_always_eager is True
    assert app.conf.broker_url == "memory://"
    assert app.conf.ONCE == 1


def test_without_namespace_the_old_names_are_read() -> None:
    app = Celery(set_as_current=False)
    app.config_from_object(SimpleNamespace(BROKER_URL="memory://", CELERY_TASK_SERIALIZER="json"))

    assert app.conf.broker_url == "memory://"
    assert app.conf.task_serializer == "json"


def test_unknown_settings_are_kept_and_readable() -> None:
    app = Celery(set_as_current=False)
    app.conf.ONCE = {"backend": "x"}
    app.conf["elasticsearch_timeout"] = 3

    assert app.conf.ONCE == {"backend": "x"}
    assert app.conf["elasticsearch_timeout"] == 3
    assert app.conf.get("nothing", "default") == "default"
    with pytest.raises(AttributeError, match="nothing"):
        _ = app.conf.nothing


def test_one_setting_in_two_spellings_with_two_values_is_refused() -> None:
    app = Celery(set_as_current=False)
    app.config_from_object({"broker_url": "memory://", "BROKER_URL": "sqlite://"})

    with pytest.raises(ImproperlyConfigured, match="two values"):
        _ = app.conf.broker_url


def test_one_setting_in_two_spellings_with_one_value_is_accepted() -> None:
    app = Celery(set_as_current=False)
    app.config_from_object({"broker_url": "memory://", "BROKER_URL": "memory://"})

    assert app.conf.broker_url == "memory://"


def test_what_the_program_sets_wins_over_the_source_whenever_it_was_set() -> None:
    app = Celery(set_as_current=False, task_acks_late=True)
    app.conf.timezone = "Europe/Paris"
    app.config_from_object({"task_acks_late": False, "timezone": "UTC", "result_expires": 5})

    assert app.conf.task_acks_late is True
    assert app.conf.timezone == "Europe/Paris"
    assert app.conf.result_expires == 5


def test_settings_object_is_read_again_each_time() -> None:
    settings = SimpleNamespace(CELERY_TASK_ALWAYS_EAGER=False)
    app = Celery(set_as_current=False)
    app.config_from_object(settings, namespace="CELERY")
    assert app.conf.task_always_eager is False

    settings.CELERY_TASK_ALWAYS_EAGER = True

    assert app.conf.task_always_eager is True


def test_source_named_by_a_string_is_imported_at_the_first_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_settings.py").write_text("task_default_queue = 'from-module'\n")
    monkeypatch.chdir(tmp_path)
    app = Celery(set_as_current=False)

    app.config_from_object("late_settings")
    imported_at_once = "late_settings" in sys.modules
    value = app.conf.task_default_queue
    sys.modules.pop("late_settings", None)

    assert not imported_at_once
    assert value == "from-module"


def test_attribute_of_a_module_is_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "holder.py").write_text("class Config:\n    task_default_queue = 'inner'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for spelling in ("holder:Config", "holder.Config"):
        app = Celery(set_as_current=False)
        app.config_from_object(spelling)
        assert app.conf.task_default_queue == "inner"
    sys.modules.pop("holder", None)


def test_source_that_does_not_exist_is_named_unless_silent() -> None:
    app = Celery(set_as_current=False)
    app.config_from_object("no_such_module")
    with pytest.raises(ImproperlyConfigured, match="no_such_module"):
        _ = app.conf.broker_url

    app.config_from_object("no_such_module", silent=True)
    assert app.conf.broker_url is None


def test_force_reads_the_source_at_once() -> None:
    app = Celery(set_as_current=False)
    with pytest.raises(ImproperlyConfigured):
        app.config_from_object("no_such_module", force=True)


def test_environment_variable_names_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SETTINGS", "tests.compat.sample_settings")
    app = Celery(set_as_current=False)
    app.config_from_envvar("MY_SETTINGS")
    assert app.conf.task_default_queue == "sample"

    with pytest.raises(ImproperlyConfigured, match="OTHER"):
        app.config_from_envvar("OTHER")
    app.config_from_envvar("OTHER", silent=True)


def test_celerys_two_environment_variables_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELERY_BROKER_URL", "memory://env")
    app = Celery(set_as_current=False, broker="memory://program")

    assert app.conf.broker_url == "memory://env"


def test_signal_of_configuration_is_sent_at_the_first_read() -> None:
    app = Celery(set_as_current=False, broker="memory://")
    seen: list[Any] = []

    def receiver(sender: Any, source: Any, **kwargs: Any) -> None:
        seen.append((sender, source.broker_url))

    app.on_after_configure.connect(receiver)
    before = list(seen)
    _ = app.conf.broker_url
    _ = app.conf.broker_url

    assert before == []
    assert seen == [(app, "memory://")]


def test_added_defaults_are_below_the_project_and_above_celerys() -> None:
    app = Celery(set_as_current=False)
    app.config_from_object({"task_default_queue": "project"})
    app.add_defaults(lambda: {"task_default_queue": "added", "result_expires": 9})

    assert app.conf.task_default_queue == "project"
    assert app.conf.result_expires == 9


def test_table_shows_what_the_project_set_and_masks_secrets() -> None:
    app = Celery(set_as_current=False, broker="sqlite:///x.db", result_expires=5)

    assert app.conf.table() == {"broker_url": "********", "result_expires": 5}
    assert app.conf.table(censored=False)["broker_url"] == "sqlite:///x.db"
    assert app.conf.humanize().splitlines() == ["broker_url: '********'", "result_expires: 5"]


def test_only_what_is_written_counts_as_set() -> None:
    app = Celery(set_as_current=False)
    app.config_from_object({"worker_prefetch_multiplier": 4})

    assert app.conf.value_set_for("CELERYD_PREFETCH_MULTIPLIER")
    assert not app.conf.value_set_for("worker_concurrency")


def test_time_zone_of_the_app_is_utc_unless_it_is_set() -> None:
    app = Celery(set_as_current=False)
    assert str(app.timezone) == "UTC"

    app.conf.timezone = "Europe/Paris"
    assert str(app.timezone) == "Europe/Paris"

    app.conf.timezone = "Mars/Base"
    with pytest.raises(ImproperlyConfigured, match="Mars/Base"):
        _ = app.timezone
