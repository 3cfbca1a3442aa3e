"""`taskmq config`, `list`, `events` and `doctor`."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from taskmq.app import App
from taskmq.cli import output
from taskmq.cli.checks import database
from taskmq.cli.views.settings import advice
from taskmq.config import Config
from taskmq.events import KINDS
from taskmq.options import TaskOptions
from taskmq.retry import RetryPolicy
from taskmq.transports.sqlite.options import SQLiteOptions
from tests.unit.cli.conftest import Run
from tests.unit.cli.values import worker


def test_config_show_has_every_setting(taskmq: Run) -> None:
    shown = taskmq("config", "show", "--json").json

    assert set(shown) == {f.name for f in fields(Config)}
    assert shown["poll_interval"] == {"value": 0.05, "default": 0.05, "changed": False}
    assert shown["queues"]["value"] == {"email": {"weight": 3, "priority": None}}


def test_config_alone_shows_and_changed_narrows(taskmq: Run) -> None:
    everything, changed = taskmq("config"), taskmq("config", "show", "--changed")

    assert len(everything.lines) == 1 + len(fields(Config))
    assert [line.split()[0] for line in changed.lines[1:]] == ["broker_url", "queues"]
    assert "email: weight 3" in changed.out


def test_config_show_says_what_is_left_open_and_writes_numbers_out(taskmq: Run) -> None:
    shown = dict(line.split(maxsplit=1) for line in taskmq("config", "show").lines[1:])

    assert shown["concurrency"] == "number of CPUs"
    assert shown["prefetch"] == "= concurrency"
    assert shown["time_limit"] == "none"
    assert shown["dead_letter_expires"] == "2592000"
    assert shown["poll_interval"] == "0.05"


def test_config_show_of_a_changed_setting_gives_the_default_in_words(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("cli_four")
    module.app = App(concurrency=4)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cli_four", module)

    lines = run("-A", "cli_four", "config", "show", "--changed").lines

    assert lines[1].split(maxsplit=2) == ["concurrency", "4", "number of CPUs"]


def test_passwords_are_masked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("cli_secret")
    # No URL that is accepted today carries a password; the ones of brokers will.
    app = App()
    app.config = app.config.changed(result_url="redis://user:hunter2@box/0")
    module.app = app  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cli_secret", module)

    answer = run("-A", "cli_secret", "config", "show")

    assert "hunter2" not in answer.out
    assert "redis://user:***@box/0" in answer.out


def test_config_check_is_quiet_about_settings_that_fit(taskmq: Run, url: str) -> None:
    memory = ["broker_url is memory://: only this process sees what it submits"]

    answer = taskmq("config", "check", "--json").json

    assert answer == {"ok": True, "advice": memory if url.startswith("memory") else []}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (Config(concurrency=4, prefetch=2), "2 slots can never be used"),
        (
            Config(concurrency=4, normal_reserved_slots=2, urgent_reserved_slots=2),
            "take all 4 slots",
        ),
        (Config(soft_time_limit=60, time_limit=30), "it never acts"),
        (Config(lease=0.1), "leases may run out"),
    ],
)
def test_advice_names_what_may_not_do_as_meant(config: Config, words: str) -> None:
    assert any(words in line for line in advice(config, []))


def test_advice_names_a_queue_no_worker_would_consume() -> None:
    from taskmq.config import QueueConfig

    config = Config(queues={"email": QueueConfig()})

    said = advice(config, [TaskOptions(queue="emial"), TaskOptions(queue="email")])

    assert [line for line in said if "emial" in line]
    assert not [line for line in said if "'email'" in line]


def test_what_a_layer_above_finds_odd_is_said_too(taskmq: Run, shop: App) -> None:
    shop.hooks.advisers.append(lambda: ["setting 'ignore_results': is 'ignore_result' meant?"])

    assert "! setting 'ignore_results'" in taskmq("config", "check").out
    assert "warn  settings     setting 'ignore_results'" in taskmq("doctor").out


def test_a_setting_that_is_wrong_is_exit_code_2(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cli_wrong.py").write_text("from taskmq import App\napp = App(pol_interval=1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    answer = run("-A", "cli_wrong", "config", "check")

    assert answer.code == 2
    assert "Did you mean 'poll_interval'?" in answer.err


def test_list_shows_where_a_call_goes_and_what_the_task_sets(taskmq: Run, shop: App) -> None:
    @shop.task(name="shop.sync", rate_limit="10/m", time_limit=60)
    async def sync() -> None: ...

    answer = taskmq("list")
    tasks = {task["task"]: task for task in taskmq("list", "--json").json}

    assert answer.lines[1].split() == ["shop.report", "default", "P0"]
    assert answer.lines[2].split() == ["shop.send_email", "email", "P5"]
    assert answer.lines[3].endswith("time_limit=60, rate_limit=10/m")
    assert tasks["shop.sync"]["async"] is True
    assert tasks["shop.sync"]["options"] == {"time_limit": 60.0, "rate_limit": "10/m"}


def test_list_on_a_narrow_terminal_cuts_neither_task_nor_queue(
    taskmq: Run, shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, queue = f"shop.{'b' * 40}", f"queue-{'q' * 40}"
    shop.task(name=name, queue=queue, time_limit=60)(lambda: None)
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "80")

    answer = taskmq("list")

    assert max(map(len, answer.lines)) <= 80
    assert name in answer.out
    assert queue in answer.out


def test_list_shows_a_policy_by_what_it_sets(taskmq: Run, shop: App) -> None:
    @shop.task(name="shop.try", retry=RetryPolicy(max_retries=9, on=(OSError,)))
    def try_() -> None: ...

    assert taskmq("list").lines[-1].endswith("retry=RetryPolicy(max_retries=9, on=(OSError,))")


def emit(shop: App, *kinds: str) -> None:
    shop.transport.coordination.emit(
        [(kind, shop.clock.now(), {"task_id": "t\x1b[2J"}) for kind in kinds]
    )


def test_events_are_lines_of_json(taskmq: Run, shop: App) -> None:
    emit(shop, "task.received", "task.started", "queue.depth")

    answer = taskmq("events", "--no-follow")

    events = [json.loads(line) for line in answer.lines]
    assert [event["kind"] for event in events] == ["task.received", "task.started", "queue.depth"]
    assert events[0]["task_id"] == "t\x1b[2J"
    assert "\x1b" not in answer.out


def test_events_can_be_narrowed_by_kind_and_number(taskmq: Run, shop: App) -> None:
    emit(shop, "task.received", "worker.online", "task.started")

    tasks = taskmq("events", "--no-follow", "--kind", "task.")
    later = taskmq("events", "--no-follow", "--after", "2")

    assert len(tasks.lines) == 2
    assert [json.loads(line)["number"] for line in later.lines] == [3]


def test_a_word_before_the_dot_means_all_of_its_kinds(taskmq: Run, shop: App) -> None:
    emit(shop, "task.received", "worker.online", "task.started")

    lines = taskmq("events", "--no-follow", "--kind", "task").lines

    assert [json.loads(line)["kind"] for line in lines] == ["task.received", "task.started"]


@pytest.mark.parametrize(
    ("kind", "likely"), [("task.strated", "task.started"), ("wroker", "worker"), ("tas", "task")]
)
def test_a_kind_that_does_not_exist_is_refused_with_those_that_do(
    taskmq: Run, kind: str, likely: str
) -> None:
    answer = taskmq("events", "--no-follow", "--kind", kind)

    assert answer.code == 2
    assert f"there is no kind {kind!r}. Did you mean {likely!r}?" in answer.err
    assert all(known in answer.err for known in KINDS)


def test_events_for_people_are_escaped(taskmq: Run, shop: App) -> None:
    emit(shop, "task.started")

    (line,) = taskmq("events", "--no-follow", "--text").lines

    assert line.split()[1] == "task.started"
    assert "\x1b" not in line


def test_following_says_when_nobody_writes_events(
    taskmq: Run, shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shop.transport, "wait", end)

    assert "taskmq worker -E" in taskmq("events").err


def test_doctor_finds_a_sound_installation_and_says_what_memory_cannot_do(
    taskmq: Run, shop: App, url: str
) -> None:
    shop.submit("shop.report")

    answer = taskmq("doctor")

    assert answer.code == 0, answer.out
    assert answer.lines[-1].startswith("0 failures")
    if url.startswith("memory"):
        assert "messages do not survive this process" in answer.out
    else:
        assert "quick_check found nothing wrong" in answer.out
        assert "can do everything" in answer.out


def test_doctor_warns_of_a_worker_that_stopped_polling(taskmq: Run, shop: App) -> None:
    now = shop.clock.now()
    shop.transport.coordination.report(worker(seen_at=now - 1, last_poll_at=now - 50))

    findings = taskmq("doctor", "--json").json["findings"]

    (found,) = [f for f in findings if f["name"] == "worker"]
    assert found["status"] == "warn"
    assert "reported 1.0s ago, its last poll was 49s before that" in found["said"]


def test_doctor_warns_of_a_worker_that_stopped_reporting(taskmq: Run, shop: App) -> None:
    now = shop.clock.now()
    shop.transport.coordination.report(worker(seen_at=now - 40, last_poll_at=now - 40))

    (found,) = [f for f in taskmq("doctor", "--json").json["findings"] if f["name"] == "worker"]

    assert (found["status"], found["said"]) == ("warn", "w1: 2 slots, reported 40s ago")


def test_doctor_does_not_mind_a_busy_worker_that_only_renews_its_long_leases(
    run: Run, shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = shop.clock.now()
    shop.config = shop.config.changed(lease=300.0)
    shop.transport.coordination.report(worker(seen_at=now - 1, last_poll_at=now - 90))

    findings = run("-A", "cli_shop", "doctor", "--json").json["findings"]

    (found,) = [f for f in findings if f["name"] == "worker"]
    assert found["status"] == "ok"


def test_doctor_reports_an_application_that_cannot_be_loaded(run: Run) -> None:
    answer = run("-A", "no_such_project", "doctor")

    assert answer.code == 1
    assert "fail  application" in answer.out


def checked(path: Path) -> dict[str, tuple[str, str]]:
    return {f.name: (f.status, f.said) for f in database.check(path, SQLiteOptions())}


def test_a_database_that_does_not_exist_is_no_fault_and_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "t.db"

    found = checked(path)

    assert found["database"][0] == "note"
    assert not path.exists()


def test_a_damaged_database_fails_with_a_way_out_and_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"this is no database at all" * 100)
    path.chmod(0o600)

    found = checked(path)

    assert found["pages"][0] == "fail"
    assert ".recover" in found["pages"][1]
    assert path.read_bytes() == b"this is no database at all" * 100


def test_a_database_others_can_read_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"")
    path.chmod(0o644)

    assert checked(path)["permissions"] == (
        "warn",
        f"0644 lets others in, 0600 is wanted: chmod 0600 {path}",
    )
