"""One row that is wrong never stops the others: it is put off, and the log names it."""

from __future__ import annotations

import logging

import pytest

from taskmq.message import ConcurrencyKey
from taskmq.testing.conformance.bench import names

KEY = ConcurrencyKey("account-1")


def change(bench, sql: str, *parameters) -> None:
    bench.transport._engine.write(lambda tx: tx.execute(sql, parameters))


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(record)["action"] for record in caplog.records]


def test_a_due_row_without_its_message_is_put_off_and_the_others_arrive(
    bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.submit("torn", "whole", concurrency=KEY, eta=bench.clock.now() + 1)
    change(bench, "DELETE FROM message WHERE message_id = 'torn'")
    bench.clock.advance(2)

    with caplog.at_level(logging.ERROR, logger="taskmq.sqlite"):
        assert names(bench.reserve(5)) == ["whole"]
        assert bench.reserve(5) == []

    assert actions(caplog) == ["bad-row"]


def test_a_holder_that_waits_nowhere_gives_way(bench) -> None:
    bench.submit("gone", concurrency=KEY)
    change(bench, "DELETE FROM ready")

    bench.submit("next", concurrency=KEY, priority=1)

    assert names(bench.reserve(5)) == ["next"]


@pytest.mark.parametrize("damage", ["meta = '{\"unheard_of\": 1}'", "ack = 'someday'"])
def test_a_message_this_version_cannot_read_is_put_off_and_the_others_go_on(
    bench, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench.submit("odd", priority=9)
    bench.submit("plain")
    change(bench, f"UPDATE message SET {damage} WHERE message_id = 'odd'")

    assert names(bench.reserve(5)) == ["plain"]
    assert actions(caplog) == ["bad-row"]

    change(bench, "UPDATE message SET meta = NULL, ack = 'on_finish', npri = -9")
    bench.clock.advance(61)
    assert names(bench.reserve(5)) == ["odd"]


def test_an_expired_message_nobody_can_read_does_not_stop_the_sweep(
    bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.submit("odd", "plain", expires_at=bench.clock.now() + 1)
    change(bench, "UPDATE message SET ack = 'someday' WHERE message_id = 'odd'")
    bench.clock.advance(2)

    bench.sweep()

    assert bench.state("plain").final
    assert actions(caplog) == ["bad-row"]
