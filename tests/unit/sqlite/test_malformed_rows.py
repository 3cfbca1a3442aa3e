"""Rows that a stranger wrote: buried with a reason, and nobody else waits (rows 33-34)."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import taskmq.testing
from taskmq import App, State
from taskmq.message import ConcurrencyKey, Rate
from taskmq.testing.conformance.bench import BODY, names

COLUMNS = (
    "message_id",
    "task_id",
    "task",
    "lane",
    "npri",
    "visible_at",
    "enqueued_at",
    "expires_at",
    "max_deliveries",
    "ack",
    "retries",
    "rate_interval",
    "key",
    "key_limit",
    "follow",
    "body",
    "meta",
)
REASONS = ("unreadable", "unknown-task", "failed", "crash-loop")
PLACE_COLUMNS = ("visible_at", "deliveries", "yields", "yieldable", "expires_at", "keyed")


def change(bench, sql: str, *parameters: object) -> None:
    bench.transport._engine.write(lambda tx: tx.execute(sql, parameters))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("npri = 'x'", "column npri holds 'x' (str)"),
        ("npri = -10", "column npri holds -10 (int)"),
        ("task = x'ff'", "column task holds b'\\xff' (bytes)"),
        ("task = CAST(x'ff' AS TEXT)", "column task holds b'\\xff' (bytes)"),
        ("lane = 77", "column lane holds 77"),
        ("retries = -1", "column retries holds -1"),
        ("retries = 1.5", "column retries holds 1.5"),
        ("max_deliveries = 'x'", "column max_deliveries holds 'x'"),
        ("max_deliveries = 0", "column max_deliveries holds 0"),
        ("expires_at = 'soon'", "column expires_at holds 'soon'"),
        ("key = x'00', key_limit = 1", "column key holds b'\\x00'"),
        ("key = 'k', key_limit = 'x'", "column key_limit holds 'x'"),
        ("follow = x'7b7d'", "column follow holds b'{}'"),
        ("body = 'text'", "column body holds 'text' (str)"),
        ("body = 5", "column body holds 5 (int)"),
        ("meta = '{'", "column meta holds '{'"),
        ("meta = '[]'", "column meta holds '[]'"),
        ("meta = 5", "column meta holds '5'"),
        ("meta = '{\"eta\": NaN}'", "column meta.eta holds nan"),
        ('meta = \'{"time_limit": "x"}\'', "column meta.time_limit holds 'x'"),
        ('meta = \'{"result_expires": "x"}\'', "column meta.result_expires holds 'x'"),
        ("meta = '{\"headers\": 5}'", "column meta.headers holds 5"),
        ("meta = '{\"root_id\": 5}'", "column meta.root_id holds 5"),
        ("meta = '{\"store_result\": 1}'", "column meta.store_result holds 1"),
    ],
)
def test_a_malformed_row_is_buried_naming_column_and_value_and_the_others_arrive(
    bench, damage: str, told: str
) -> None:
    bench.submit("odd", priority=9)
    bench.submit("plain")
    change(bench, f"UPDATE message SET {damage} WHERE message_id = 'odd'")

    assert names(bench.reserve(5)) == ["plain"]

    (letter,) = bench.transport.operators.dead_letters()
    assert letter.reason == "unreadable"
    assert letter.error.startswith("DecodeError: the stored message is malformed: its column ")
    assert told in letter.error
    assert letter.error.isprintable()
    assert letter.message.task_id == "odd"
    assert letter.message.queue == "q"
    assert letter.message.body == {"body = 'text'": b"text", "body = 5": b"5"}.get(damage, BODY)
    assert bench.state("odd") is State.DEAD


def test_a_rate_limit_without_its_interval_is_malformed(bench) -> None:
    bench.submit("odd", rate=Rate("r", 1.0))
    bench.submit("plain")
    change(bench, "UPDATE message SET rate_interval = NULL")

    assert names(bench.reserve(5)) == ["plain"]
    (letter,) = bench.transport.operators.dead_letters()
    assert "column rate_interval is empty" in letter.error


def test_a_malformed_row_gives_up_its_concurrency_key(bench) -> None:
    bench.submit("odd", "next", concurrency=ConcurrencyKey("k"))
    change(bench, "UPDATE message SET key_limit = 'x' WHERE message_id = 'odd'")

    assert names(bench.reserve(5)) == ["next"]


@pytest.mark.parametrize("column", ["visible_at", "deliveries", "yields", "expires_at"])
def test_a_message_whose_place_is_malformed_is_buried(bench, column: str) -> None:
    bench.submit("odd", priority=9)
    bench.submit("plain")
    change(
        bench,
        f"UPDATE ready SET {column} = 'x' WHERE seq = (SELECT min(seq) FROM message)",
    )

    assert names(bench.reserve(5)) == ["plain"]
    (letter,) = bench.transport.operators.dead_letters()
    assert (letter.reason, letter.message.task_id) == ("unreadable", "odd")


def test_a_stamp_that_is_no_number_stops_no_producer(bench) -> None:
    bench.submit("odd")
    change(bench, "UPDATE message SET enqueued_at = 'x'")

    bench.submit("one")
    bench.transport.submit([bench.message("two"), bench.message("three")])

    assert set(names(bench.reserve(5))) == {"odd", "one", "two", "three"}


def test_operators_see_a_malformed_row_as_what_is_left_of_it(bench) -> None:
    bench.submit("odd", "plain")
    change(bench, "UPDATE message SET retries = 'x', meta = '{' WHERE message_id = 'odd'")
    operators = bench.transport.operators

    assert [found.message.task_id for found in operators.find("odd")] == ["odd"]
    assert [revoked.ended for revoked in operators.revoke(["odd"])] == [True]
    assert names(bench.reserve(5)) == ["plain"]


_values = (
    st.none()
    | st.text(max_size=5).filter(lambda text: text.isascii())
    | st.binary(max_size=5)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.sampled_from(['{"headers": {"compression": 5}}', '{"eta": 1e999}', "[" * 5000])
)


def run_beside_a_good_one(tmp_path, table: str, changes: dict[str, Any]) -> None:
    """Submit two tasks, change columns of the first as a stranger would, and let a worker run both."""
    app = taskmq.testing.app(broker_url=f"sqlite:///{tmp_path}/q.db")
    try:
        work = app.task(name="jobs.work")(lambda: 1)
        odd = app.message(work, priority=9)
        app.publish([odd])
        written = damage(app, table, changes)
        good = work.delay()
        with taskmq.testing.worker(app) as w:
            w.run_until_idle()
            w.advance(300)
        assert good.get(timeout=0) == 1, written
        letters = app.transport.operators.dead_letters()
        assert all(letter.reason in REASONS for letter in letters)
        # Wherever it is, it is somewhere: run, buried, ended, or put off for a newer version.
        assert count(app, "message") + count(app, "dead") + count(app, "result") >= 2, written
    finally:
        app.close()
        for left in tmp_path.glob("q.db*"):
            left.unlink()


def damage(app: App, table: str, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes the table's constraints let through."""
    with sqlite3.connect(app.transport.describe()) as stranger:
        written = {}
        for column, value in changes.items():
            try:
                stranger.execute(f"UPDATE {table} SET {column} = ?", (value,))
            except sqlite3.IntegrityError:
                continue
            written[column] = value
    stranger.close()
    return written


def count(app: App, table: str) -> int:
    stranger = sqlite3.connect(app.transport.describe())
    try:
        return int(stranger.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    finally:
        stranger.close()


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory):
    return tmp_path_factory.mktemp("rows")


@given(st.dictionaries(st.sampled_from(COLUMNS), _values, min_size=1, max_size=3))
@example({"meta": '{"result_expires": "x"}'})
@example({"max_deliveries": "x"})
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_column_of_a_message_stops_the_worker(folder, changes: dict[str, Any]) -> None:
    run_beside_a_good_one(folder, "message", changes)


@given(st.dictionaries(st.sampled_from(PLACE_COLUMNS), _values, min_size=1, max_size=3))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_column_of_a_place_stops_the_worker(folder, changes: dict[str, Any]) -> None:
    run_beside_a_good_one(folder, "ready", changes)
