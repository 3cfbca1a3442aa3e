"""What a newcomer does with the README alone, from submit to replay."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.integration.cli.conftest import CommandLine, Worker, environment
from tests.support.processes import Processes
from tests.support.waiting import wait_until


def test_submit_look_run_break_find_and_replay(
    taskmq: CommandLine, worker: Worker, started: Processes, shop: Path
) -> None:
    mail = taskmq("-A", "shop", "call", "shop.send_email", "--args", '["a@b.com"]').strip()
    urgent = taskmq(
        "-A", "shop", "call", "shop.send_email", "--args", '["c@d.com"]', "--priority", "9"
    ).strip()
    broken = taskmq("-A", "shop", "call", "shop.divide", "--args", "[0]").strip()

    assert "email: P9=1 P5=1" in taskmq("-A", "shop", "status", "--by-priority").splitlines()
    peeked = [entry["task_id"] for entry in taskmq.json("-A", "shop", "peek")]
    assert peeked == [urgent, mail, broken]
    assert "no live worker consumes queue email" in taskmq("-A", "shop", "why", mail)

    process = worker("-Q", "default,email", "-c", "2")

    assert taskmq("-A", "shop", "result", mail, "--timeout", "30") == '"sent to a@b.com"\n'
    answer = taskmq("-A", "shop", "result", broken, "--timeout", "30", code=1)
    assert "ZeroDivisionError: not by nothing" in answer
    (letter,) = taskmq.json("-A", "shop", "dlq", "list")
    assert letter["task_id"] == broken
    assert "ZeroDivisionError" in taskmq("-A", "shop", "dlq", "show", broken)
    assert "taskmq dlq replay" in taskmq("-A", "shop", "why", broken)
    (alive,) = taskmq.json("-A", "shop", "status")["workers"]
    assert alive["queues"] == ["default", "email"]

    (shop / "fixed").touch()
    assert taskmq("-A", "shop", "dlq", "replay", "--all") == "replayed 1 message\n"

    assert taskmq("-A", "shop", "result", broken, "--timeout", "30") == "42\n"
    assert taskmq.json("-A", "shop", "dlq", "list") == []
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert "no worker is alive" in taskmq("-A", "shop", "status")


def test_the_store_can_be_looked_at_without_the_application(
    taskmq: CommandLine, shop: Path
) -> None:
    taskmq("-A", "shop", "call", "shop.send_email", "--args", '["a@b.com"]')

    answer = taskmq("-b", "sqlite:///shop.db", "status", "--by-priority")

    assert answer.splitlines()[0] == "email: P5=1"


def test_looking_at_a_store_that_does_not_exist_makes_none(taskmq: CommandLine, shop: Path) -> None:
    taskmq("-b", "sqlite:///typo.db", "status", code=2)
    taskmq("status", code=2)
    taskmq("-b", "sqlite:///typo.db", "result", "some-id", code=2)
    taskmq("-b", "sqlite:///typo.db", "revoke", "some-id", code=2)

    assert sorted(path.name for path in shop.iterdir()) == ["shop.py"]


def test_looking_at_an_application_nobody_has_used_makes_no_store(
    taskmq: CommandLine, shop: Path
) -> None:
    assert "email" in taskmq("-A", "shop", "status")
    taskmq("-A", "shop", "peek")
    taskmq("-A", "shop", "why", "some-id", code=1)
    taskmq("-A", "shop", "events", code=1)

    assert {path.suffix for path in shop.iterdir() if path.is_file()} == {".py"}


def test_a_broker_given_to_the_worker_wins_over_the_applications(
    taskmq: CommandLine, worker: Worker, shop: Path
) -> None:
    url = "sqlite:///elsewhere.db"
    task_id = taskmq("-A", "shop", "-b", url, "call", "shop.send_email", "--args", '["x"]').strip()

    worker("-b", url, "-c", "1")

    assert "sent to x" in taskmq("-b", url, "result", task_id, "--timeout", "30")
    assert not (shop / "shop.db").exists()


def test_events_of_a_worker_are_streamed(taskmq: CommandLine, worker: Worker) -> None:
    worker("-E", "-c", "1")
    task_id = taskmq("-A", "shop", "call", "shop.send_email", "--args", '["x"]').strip()
    taskmq("-A", "shop", "result", task_id, "--timeout", "30")

    def succeeded() -> bool:
        return "task.succeeded" in taskmq("-A", "shop", "events", "--no-follow")

    wait_until(succeeded, timeout=20, what="the event of the task's end")
    (alive,) = taskmq.json("-A", "shop", "status")["workers"]
    assert alive["events"] is True


def test_a_pid_file_that_is_held_keeps_a_second_worker_from_starting(
    taskmq: CommandLine, worker: Worker, shop: Path
) -> None:
    first = worker("-c", "1", "--pidfile", "w.pid")
    pid = wait_until(
        lambda: (shop / "w.pid").exists() and (shop / "w.pid").read_text().strip(), timeout=20
    )

    taskmq("-A", "shop", "worker", "--pidfile", "w.pid", code=5)

    assert pid == str(first.pid)


def test_a_damaged_store_is_exit_code_3_and_left_alone(taskmq: CommandLine, shop: Path) -> None:
    (shop / "shop.db").write_bytes(b"no database" * 500)
    (shop / "shop.db").chmod(0o600)

    taskmq("-A", "shop", "status", code=3)

    assert (shop / "shop.db").read_bytes() == b"no database" * 500
    assert "fail  pages" in taskmq("-A", "shop", "doctor", code=1)


def test_the_frame_loads_nothing_heavy(taskmq: CommandLine, shop: Path) -> None:
    (shop / "probe.py").write_text(
        "import sys\nfrom taskmq.cli.main import main\nmain(['--version'])\n"
        "heavy = {'kombu', 'sqlite3', 'asyncio', 'multiprocessing', 'taskmq.app'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    out = subprocess.run(
        [sys.executable, "probe.py"],
        cwd=shop,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout

    assert out.splitlines()[-1] == "[]"
