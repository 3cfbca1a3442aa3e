"""An application's own app, tested in memory on a virtual clock."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskmq.testing
from taskmq import App
from taskmq.clock import SystemClock
from taskmq.errors import ConfigError
from taskmq.states import State


@pytest.fixture
def shop(tmp_path: Path) -> App:
    """An app as an application declares it, on a file."""
    return App(broker_url=f"sqlite:///{tmp_path}/shop.db")


def test_a_reminder_goes_out_after_an_hour_without_waiting_for_it(shop: App) -> None:
    @shop.task
    def remind(to: str) -> str:
        return f"sent to {to}"

    with taskmq.testing.isolated(shop), taskmq.testing.worker(shop) as w:
        result = remind.apply_async(("a@b.com",), countdown=3600)
        w.run_until_idle()
        assert result.state == State.SCHEDULED

        w.advance(3600)

        assert result.get(timeout=0) == "sent to a@b.com"


def test_the_real_broker_is_neither_read_nor_written(shop: App, tmp_path: Path) -> None:
    @shop.task
    def job() -> int:
        return 1

    with taskmq.testing.isolated(shop), taskmq.testing.worker(shop) as w:
        job.delay()
        w.run_until_idle()

    assert not list(tmp_path.iterdir())


def test_the_app_is_as_it_was_afterwards(shop: App) -> None:
    @shop.task
    def job() -> int:
        return 1

    before = job.delay()
    with taskmq.testing.isolated(shop):
        assert shop.result(before.id).state == State.UNKNOWN

    assert before.state == State.QUEUED
    assert isinstance(shop.clock, SystemClock)
    shop.close()


def test_each_block_begins_empty(shop: App) -> None:
    @shop.task
    def job() -> int:
        return 1

    with taskmq.testing.isolated(shop):
        left = job.delay()
        assert left.state == State.QUEUED
    with taskmq.testing.isolated(shop):
        assert shop.state(left.id) == State.UNKNOWN


def test_a_worker_without_a_virtual_clock_is_refused_with_the_way_out(shop: App) -> None:
    with (
        pytest.raises(ConfigError, match=r"taskmq\.testing\.isolated"),
        taskmq.testing.worker(shop),
    ):
        raise AssertionError("it was let in")
