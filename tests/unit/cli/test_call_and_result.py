"""`taskmq call` and `taskmq result`."""

from __future__ import annotations

import json

import pytest

from taskmq.app import App
from taskmq.clock import FakeClock
from taskmq.message import ResultRecord
from taskmq.states import State
from tests.unit.cli.conftest import Run


def test_call_as_the_seed_writes_it(taskmq: Run, shop: App) -> None:
    answer = taskmq("call", "shop.send_email", "--args", '["a@b.com"]', "--priority", "5")

    (found,) = shop.transport.operators.find(answer.out.strip())
    assert answer.code == 0
    assert (found.message.priority, found.message.queue) == (5, "email")
    assert json.loads(found.message.body)[0] == ["a@b.com"]


def test_without_a_priority_the_tasks_own_applies(taskmq: Run) -> None:
    answer = taskmq("call", "shop.send_email", "--kwargs", '{"to": "x"}', "--json")

    assert answer.json["priority"] == 5


@pytest.mark.parametrize("value", ["10", "-10"])
def test_a_priority_out_of_range_is_refused_and_nothing_is_submitted(
    taskmq: Run, shop: App, value: str
) -> None:
    answer = taskmq("call", "shop.report", "--priority", value)

    assert answer.code == 2
    assert f"priority {value} is out of range" in answer.err
    assert shop.transport.operators.depth() == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--priority", "high"),
        ("--args", "[1,"),
        ("--args", '{"a": 1}'),
        ("--kwargs", "[1]"),
        ("--eta", "tomorrow"),
        ("--expires", "never"),
        ("--countdown", "-1"),
        ("--countdown", "nan"),
    ],
)
def test_a_bad_option_names_itself_and_what_is_accepted(
    taskmq: Run, shop: App, option: str, value: str
) -> None:
    answer = taskmq("call", "shop.report", option, value)

    assert answer.code == 2
    assert option in answer.err
    assert shop.transport.operators.depth() == []


def test_countdown_eta_and_expires_reach_the_message(taskmq: Run, clock: FakeClock) -> None:
    counted = taskmq("call", "shop.report", "--countdown", "60", "--expires", "90", "--json")
    dated = taskmq("call", "shop.report", "--eta", "2033-05-18T03:33:20Z", "--json")

    assert counted.json["eta"] == clock.now() + 60
    assert counted.json["expires_at"] == clock.now() + 90
    assert dated.json["eta"] == 2_000_000_000.0


def test_a_name_the_application_does_not_know_is_refused_with_the_likely_one(
    taskmq: Run, shop: App
) -> None:
    answer = taskmq("call", "shop.reprot")

    assert answer.code == 2
    assert "'shop.reprot' is not a task of cli_shop. Did you mean 'shop.report'?" in answer.err
    assert "--anyway" in answer.err
    assert shop.transport.operators.depth() == []


def test_a_name_another_worker_knows_is_submitted_anyway(taskmq: Run, shop: App) -> None:
    answer = taskmq("call", "elsewhere.sync", "--anyway")

    (found,) = shop.transport.operators.find(answer.out.strip())
    assert (answer.code, answer.err, found.message.task) == (0, "", "elsewhere.sync")


@pytest.mark.parametrize("value", ["high", "1.5", ""])
def test_a_priority_that_is_no_number_is_told_the_range(taskmq: Run, value: str) -> None:
    answer = taskmq("call", "shop.report", "--priority", value)

    assert answer.code == 2
    assert f"an int from -9 to 9 (larger = more urgent), got {value!r}" in answer.err


def test_arguments_the_task_does_not_take_are_refused(taskmq: Run, shop: App) -> None:
    answer = taskmq("call", "shop.send_email", "--args", "[1, 2, 3]")

    assert answer.code == 2
    assert "send_email" in answer.err
    assert "Traceback" not in answer.err
    assert shop.transport.operators.depth() == []


def store(shop: App, **changes: object) -> None:
    values: dict[str, object] = {"task_id": "t1", "state": State.SUCCEEDED}
    shop.results.put([ResultRecord(**values | changes)])  # type: ignore[arg-type]


def test_a_value_is_printed_as_json_and_alone(taskmq: Run, shop: App) -> None:
    store(shop, body=b'{"to": "a@b.com", "n": [1, 2]}')

    answer = taskmq("result", "t1")

    assert answer.code == 0
    assert json.loads(answer.out) == {"to": "a@b.com", "n": [1, 2]}


def test_a_failure_is_exit_code_1_and_says_what_was_raised(taskmq: Run, shop: App) -> None:
    body = b'{"exc_type": "ValueError", "exc_module": "builtins", "exc_message": ["boom"]}'
    store(shop, state=State.FAILED, body=body, traceback="Traceback…\n  line 3\n", worker="w1")

    plain, full = taskmq("result", "t1"), taskmq("result", "t1", "--traceback")

    assert plain.code == 1
    assert plain.lines[0] == "t1: failed, ValueError: boom"
    assert "line 3" not in plain.out
    assert "  line 3" in full.lines
    assert taskmq("result", "t1", "--json").json["error"] == "ValueError: boom"


def test_a_task_that_has_not_ended_and_one_nobody_knows_are_told_apart(taskmq: Run) -> None:
    task_id = taskmq("call", "shop.report").out.strip()

    assert taskmq("result", task_id).out.strip() == f"{task_id}: queued"
    assert taskmq("result", "no-such").out.strip() == "no-such: unknown"
    assert taskmq("result", "no-such").code == 1


def test_a_value_that_is_no_json_is_described_and_never_decoded(taskmq: Run, shop: App) -> None:
    store(shop, body=b"\x80\x04.", content_type="application/x-python-serialize")

    assert "3 bytes of application/x-python-serialize" in taskmq("result", "t1").out
