"""The file's own upkeep: the log, free pages, and what nobody asks for any more."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from taskmq.coordination.base import WorkerInfo
from taskmq.states import State
from taskmq.transports.sqlite import sweeping


def fill(bench, count: int = 50) -> None:
    bench.transport.submit([bench.message(f"m{n}", body=b"x" * 3000) for n in range(count)])


def count(bench, table: str):
    return bench.transport._store.read(
        lambda c: c.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
    )


def pragma(bench, name: str):
    return bench.transport._store.glance(lambda c: c.execute(f"PRAGMA {name}").fetchall()[0][0])


def test_a_checkpoint_copies_the_log_into_the_file(bench) -> None:
    fill(bench)
    size = bench.transport.path.stat().st_size

    done = bench.transport.coordination.checkpoint().done

    assert done > 50
    assert bench.transport.path.stat().st_size > size + 50 * 3000


def test_a_reader_that_keeps_the_log_long_is_told_of(
    bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sweeping, "_LONG_LOG", 10)
    bench.transport.coordination.checkpoint()
    reader = sqlite3.connect(bench.transport.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM message").fetchall()
    fill(bench)

    bench.transport.coordination.checkpoint()
    assert "could not be copied back" in caplog.text

    caplog.clear()
    reader.close()
    bench.transport.coordination.checkpoint()
    assert caplog.text == ""


@pytest.mark.parametrize(("many", "kept"), [(10, False), (10_000, True)])
def test_free_pages_are_given_back_only_where_there_are_very_many(
    bench, monkeypatch: pytest.MonkeyPatch, many: int, kept: bool
) -> None:
    monkeypatch.setattr(sweeping, "_MANY_FREE", many)
    fill(bench)
    bench.transport.operators.purge("q")
    pages = pragma(bench, "page_count")

    bench.transport.coordination.checkpoint()

    assert (pragma(bench, "page_count") == pages) is kept


def test_the_oldest_events_go_first(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "EVENTS_KEPT", 3)
    coordination = bench.transport.coordination
    coordination.emit([("kind", float(n), {"n": n}) for n in range(10)])

    bench.sweep()

    assert [event.fields["n"] for event in coordination.events()] == [7, 8, 9]
    assert coordination.last_event() == 10


def test_numbers_of_events_go_on_after_all_were_swept(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "EVENTS_KEPT", 0)
    coordination = bench.transport.coordination
    coordination.emit([("kind", 1.0, {}), ("kind", 2.0, {})])
    bench.sweep()
    coordination.emit([("kind", 3.0, {})])

    assert [event.number for event in coordination.events()] == [3]


def test_workers_rates_and_commands_past_their_time_leave_no_rows(bench) -> None:
    coordination = bench.transport.coordination
    now = bench.clock.now()
    info = WorkerInfo(
        name="w",
        pid=1,
        host="h",
        queues=("q",),
        slots=1,
        free_slots=1,
        started_at=now,
        seen_at=now,
        last_poll_at=now,
    )
    coordination.report(info)
    coordination.report(replace(info, name="w2"))
    coordination.send("ping", to=["w"], expires=10)
    coordination.reply("r", "w", {"ok": "pong"})
    bench.transport._engine.write(
        lambda tx: tx.execute(
            "INSERT INTO rate VALUES ('k', ?, 0, 0, 1)", (tx.now - 86_400_000_000,)
        )
    )
    bench.clock.advance(61)
    bench.sweep()
    assert [count(bench, t) for t in ("worker", "command", "reply", "rate")] == [2, 0, 0, 0]

    bench.clock.advance(86_400)
    bench.sweep()
    assert count(bench, "worker") == 0


def test_results_kept_for_ever_are_not_swept(bench) -> None:
    bench.submit("a", "b")
    first, second = bench.reserve(2)
    now = bench.clock.now()
    bench.transport.settle([bench.succeeded(first), bench.succeeded(second, expires_at=now + 10)])
    bench.clock.advance(11)
    bench.sweep()

    assert bench.state("a") is State.SUCCEEDED
    assert bench.state("b") is State.UNKNOWN
    assert count(bench, "result") == 1


def test_the_log_does_not_grow_without_end(bench) -> None:
    """Every commit may bring a checkpoint, and nothing of ours keeps an old snapshot open."""
    log = bench.transport.path.with_name(f"{bench.transport.path.name}-wal")
    bench.transport.operators.queues()
    for _ in range(12):
        fill(bench, 300)
        bench.transport.operators.depth()
        bench.transport.operators.purge("q")

    # 2000 pages and what one transaction more brings; the whole traffic was many times that.
    assert log.stat().st_size < 3 * 2000 * 4096
