"""A misspelt queue is noticed: refused where nothing can be meant by it, else pointed out."""

from __future__ import annotations

import pytest

from taskmq.app import App
from taskmq.errors import TransportUnavailable
from taskmq.worker.options import WorkerOptions
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_acting import bury
from tests.unit.cli.test_worker_command import told
from tests.unit.cli.values import worker

__all__ = ["told"]  # a fixture

LIKELY = "neither the application nor the store knows a queue 'emial'. Did you mean 'email'?"


@pytest.mark.parametrize(
    "command",
    [
        "queue pause emial",
        "queue pause email emial",
        "queue resume emial",
        "purge --force -Q emial",
        "purge --force -X emial",
    ],
)
def test_pausing_and_purging_a_queue_nobody_knows_is_refused_and_nothing_happens(
    taskmq: Run, shop: App, command: str
) -> None:
    shop.submit("shop.report", queue="email")

    answer = taskmq(*command.split())

    assert (answer.code, answer.out) == (2, "")
    assert LIKELY in answer.err
    assert not any(info.paused for info in shop.transport.operators.queues())
    assert sum(depth.ready for depth in shop.transport.operators.depth()) == 1


def test_a_queue_can_be_paused_ahead_of_its_first_message_when_it_is_meant(
    taskmq: Run, shop: App
) -> None:
    assert taskmq("queue", "pause", "later", "--anyway").lines == ["later is paused"]
    # Now the store knows it.
    assert taskmq("queue", "resume", "later").lines == ["later is resumed"]


def test_a_declared_queue_needs_no_message_to_be_paused(taskmq: Run) -> None:
    answer = taskmq("queue", "pause", "email")

    assert (answer.code, answer.err) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        "call shop.report --queue emial",
        "status -Q emial",
        "peek -Q emial",
        "dlq list --queue emial",
        "dlq replay --all --queue emial",
    ],
)
def test_elsewhere_the_likely_queue_is_named_beside_the_answer(taskmq: Run, command: str) -> None:
    answer = taskmq(*command.split())

    assert answer.code == 0
    assert answer.out
    assert answer.err.strip() == LIKELY


@pytest.mark.parametrize(
    "command",
    ["call shop.report --queue email", "status -Q default,email", "dlq list --queue email"],
)
def test_queues_that_are_known_are_not_remarked_on(taskmq: Run, command: str) -> None:
    assert taskmq(*command.split()).err == ""


def test_a_queue_is_known_by_its_messages_its_worker_and_its_dead_letters(
    taskmq: Run, shop: App
) -> None:
    now = shop.clock.now()
    shop.submit("shop.report", queue="stored")
    shop.transport.coordination.report(worker(queues=("served",), seen_at=now, last_poll_at=now))
    bury(shop, queue="dead")

    assert taskmq("status", "-Q", "stored,served").err == ""
    assert taskmq("dlq", "list", "--queue", "dead").err == ""


def test_without_an_application_only_the_store_is_asked(run: Run, tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/jobs.db"
    App(broker_url=url).submit("jobs.run", queue="email")

    answer = run("-b", url, "status", "-Q", "emial")

    assert answer.err.strip() == "the store knows no queue 'emial'. Did you mean 'email'?"


@pytest.mark.parametrize("option", ["-Q", "-X"])
def test_a_worker_of_a_misspelt_queue_starts_and_says_so(
    taskmq: Run, told: list[WorkerOptions], option: str
) -> None:
    answer = taskmq("worker", option, "emial")

    assert answer.code == 0
    assert answer.err.strip() == LIKELY
    assert len(told) == 1


def test_a_store_that_does_not_answer_is_left_for_the_worker_to_report(
    taskmq: Run, shop: App, told: list[WorkerOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise TransportUnavailable("locked")

    monkeypatch.setattr(shop.transport.operators, "queues", fail)

    assert taskmq("worker", "-Q", "emial").code == 0
    assert len(told) == 1
