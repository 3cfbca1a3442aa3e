"""`taskmq worker`: Celery's flags become a worker's options; the pid file; logging."""

from __future__ import annotations

import logging
import math
import os
import socket
from pathlib import Path
from typing import Any

import pytest

import taskmq.worker.worker
from taskmq.app import App
from taskmq.cli.logs import set_up_logging
from taskmq.cli.pidfile import PidFile
from taskmq.cli.worker import expand
from taskmq.logformat import SafeFormatter
from taskmq.worker.options import WorkerOptions
from tests.support.processes import processes
from tests.support.waiting import wait_until
from tests.unit.cli.conftest import Answer, Run

HOST = socket.gethostname()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[WorkerOptions]:
    """What workers were told; none of them runs."""
    seen: list[WorkerOptions] = []

    class Told:
        def __init__(self, app: App, options: WorkerOptions) -> None:
            seen.append(options)

        def run(self) -> int:
            return 0

    monkeypatch.setattr(taskmq.worker.worker, "Worker", Told)
    return seen


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        ("-Q email,default -Q slow", "queues", ("email", "default", "slow")),
        ("--queues=email", "queues", ("email",)),
        ("-X email", "queues", ("default",)),
        ("-c 4", "concurrency", 4),
        ("--concurrency=4", "concurrency", 4),
        ("-P threads", "pool", "threads"),
        ("--pool=processes", "pool", "prefork"),
        ("", "pool", None),
        ("-P asyncio", "pool", "asyncio"),
        ("-n w1@%h", "name", f"w1@{HOST}"),
        ("--hostname=w%%1", "name", "w%1"),
        ("-E", "events", True),
        ("--events", "events", True),
        ("", "events", None),
        ("--prefetch 16", "prefetch", 16),
        ("-c 4 --prefetch-multiplier 3", "prefetch", 12),
        ("-P solo --prefetch-multiplier 3", "prefetch", 3),
        ("--max-tasks-per-child=100", "max_tasks_per_child", 100),
        ("--max-memory-per-child=50000", "max_memory_per_child", 50000),
        ("--time-limit=300 --soft-time-limit=240", "soft_time_limit", 240.0),
        ("--drain-timeout 5", "drain_timeout", 5.0),
        ("--drain-timeout none", "drain_timeout", math.inf),
        ("--start-method spawn", "start_method", "spawn"),
        ("-O fair -l info", "pool", None),
        ("-Ofair", "pool", None),
        ("--loglevel=DEBUG", "app_spec", "cli_shop"),
    ],
)
def test_flags_reach_the_worker(
    taskmq: Run, told: list[WorkerOptions], flags: str, name: str, value: Any
) -> None:
    answer = taskmq("worker", *flags.split())

    assert answer.code == 0, answer.err
    assert getattr(told[0], name) == value


@pytest.mark.parametrize(
    ("flags", "prefetch"), [("", 3), ("-c 4", 3), ("-P threads -c 4", 12), ("-P solo", 3)]
)
def test_multiple_of_the_slots_is_one_of_those_the_settings_pool_has(
    taskmq: Run, shop: App, told: list[WorkerOptions], flags: str, prefetch: int
) -> None:
    shop.config = shop.config.changed(pool="solo")

    taskmq("worker", "--prefetch-multiplier", "3", *flags.split())

    assert told[0].prefetch == prefetch


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--autoscale=10,3", "use -c/--concurrency"),
        ("-D", "systemd"),
        ("-B", "a later part"),
        ("-P gevent", "is not there yet"),
        ("-P bogus", "is not one of"),
        ("-l loud", "one of DEBUG, INFO"),
        ("-O default", "is not"),
        ("-c 0", "an int from 1, got 0"),
        ("--prefetch-multiplier 0", "an int from 1, got 0"),
        ("--prefetch 4 --prefetch-multiplier 2", "not both"),
        ("--drain-timeout soon", "seconds from 0 or 'none'"),
        ("-X email,default", "leaves no queue"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(
    taskmq: Run, told: list[WorkerOptions], flags: str, words: str
) -> None:
    answer = taskmq("worker", *flags.split())

    assert answer.code == 2
    assert words in answer.err
    assert told == []


def test_flags_for_what_does_not_exist_are_accepted_and_say_so(
    taskmq: Run, told: list[WorkerOptions]
) -> None:
    answer = taskmq("worker", "--without-gossip", "--without-mingle", "--without-heartbeat")

    assert answer.code == 0
    assert len([line for line in answer.err.splitlines() if "changes nothing" in line]) == 3


@pytest.mark.parametrize(
    ("text", "hostname", "expanded"),
    [
        ("/var/log/%n.log", "w1@box", "/var/log/w1.log"),
        ("/var/log/%n%I.log", "w1@box", "/var/log/w1.log"),
        ("%p-%i", "w1@box", "w1@box-0"),
        ("%h", "", HOST),
        ("50%%", "", "50%"),
        ("%q", "", "%q"),
        ("plain", "", "plain"),
    ],
)
def test_celerys_placeholders(text: str, hostname: str, expanded: str) -> None:
    assert expand(text, hostname) == expanded


def test_a_pid_file_holds_the_pid_and_goes_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "w.pid"

    with PidFile(str(path)):
        assert path.read_text() == f"{os.getpid()}\n"

    assert not path.exists()


def test_a_stale_pid_file_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "w.pid"
    path.write_text("999999999\n")

    with PidFile(str(path)):
        assert path.read_text() == f"{os.getpid()}\n"


def test_a_pid_file_that_a_live_worker_holds_is_exit_code_5(
    taskmq: Run, told: list[WorkerOptions], tmp_path: Path
) -> None:
    path = tmp_path / "w.pid"
    holder = (
        "import sys, time\nfrom taskmq.cli.pidfile import PidFile\n"
        "with PidFile(sys.argv[1]):\n    time.sleep(60)\n"
    )

    with processes(tmp_path) as started:
        process = started.python("-c", holder, str(path), env={"PYTHONPATH": os.getcwd()})
        wait_until(lambda: path.exists() and path.read_text(), what="the holder's pid")
        answer: Answer = taskmq("worker", "--pidfile", str(path))

    assert answer.code == 5
    assert f"pid {process.pid}" in answer.err
    assert told == []


def test_nothing_that_is_logged_can_pass_for_a_record() -> None:
    record = logging.LogRecord(
        "x", logging.INFO, __file__, 1, "evil\n2026 CRITICAL\x1b[2J", (), None
    )

    text = SafeFormatter("%(levelname)s %(message)s").format(record)

    assert text == "INFO evil\n    2026 CRITICAL\\x1b[2J"


def test_run_that_a_record_was_logged_in_comes_before_its_message() -> None:
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "paid %s", ("twice",), None)
    record.in_task = "shop.pay[id-1]"
    formatter = SafeFormatter("%(name)s: %(message)s")

    # Each handler formats it anew.
    assert [formatter.format(record) for _ in range(2)] == ["x: shop.pay[id-1]: paid twice"] * 2


def test_logging_the_project_has_set_up_is_left_alone() -> None:
    root = logging.getLogger()
    mine = logging.NullHandler()
    root.handlers[:] = [mine]

    set_up_logging("DEBUG", None)

    assert root.handlers == [mine]
    assert logging.getLogger("taskmq").level == logging.DEBUG


@pytest.mark.parametrize(("level", "each_task"), [(None, False), ("INFO", True), ("ERROR", False)])
def test_each_task_has_a_line_only_where_it_is_asked_for(
    tmp_path: Path, level: str | None, each_task: bool
) -> None:
    set_up_logging(level, str(tmp_path / "w.log"))

    logging.getLogger("taskmq.task").info("task x succeeded")
    logging.getLogger("taskmq.worker").info("stopped")

    assert ("succeeded" in (tmp_path / "w.log").read_text()) is each_task
    assert ("stopped" in (tmp_path / "w.log").read_text()) is (level != "ERROR")


def test_a_log_file_is_written(tmp_path: Path) -> None:
    set_up_logging("INFO", str(tmp_path / "w.log"))

    logging.getLogger("taskmq.x").info("started")

    assert "taskmq.x: started" in (tmp_path / "w.log").read_text()
