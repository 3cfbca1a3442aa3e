"""Files of earlier versions, migrations that are killed, and two versions at once (rows 45, 46) (I1, I12)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from taskmq.clock import FakeClock
from taskmq.errors import TransportError
from taskmq.message import Delivery
from taskmq.states import State
from taskmq.transports.base import Outcome, Verb
from taskmq.transports.sqlite import SQLiteTransport, migrations
from tests.faults.sqlite.actors import NEXT_STEP, message
from tests.faults.sqlite.older import LEASE, LEFT_AT, NEWEST, load, opened, request

KILLED = {"TASKMQ_FAILPOINTS": "in_migration=kill"}


def version(path: Path) -> int:
    """The schema version of a whole file."""
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return found


def take(transport: SQLiteTransport, slots: int = 100) -> list[Delivery]:
    return list(transport.turn((), request(slots)).deliveries)


def finish(transport: SQLiteTransport, deliveries: list[Delivery]) -> list[str]:
    outcomes = [Outcome(delivery=d, verb=Verb.FINISH) for d in deliveries]
    assert transport.settle(outcomes) == ()
    return [d.message.message_id for d in deliveries]


# -- files of earlier versions ----------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, NEWEST + 1))
def test_everything_an_earlier_version_left_goes_on(path: Path, number: int) -> None:
    load(number, path)
    clock = FakeClock(LEFT_AT + 1)
    transport = opened(path, clock)
    assert version(path) == NEWEST

    assert transport.results.state("succeeded") is State.SUCCEEDED
    assert transport.results.state("running") is State.RUNNING
    assert {info.name: info.paused for info in transport.operators.queues()} == {
        "q": False,
        "paused": True,
    }
    ready = take(transport)
    assert [d.message.message_id for d in ready] == [
        "urgent",
        "other id",
        "first of its key",
        "limited",
        "low",
    ]
    assert dict(ready[0].message.headers) == {"from": "before"}
    assert ready[1].message.task_id == "shared"
    finish(transport, ready)
    assert finish(transport, take(transport)) == ["blocked"]

    # Its worker is gone: the lease ends, and two looks find it so.
    for _ in range(3):
        clock.advance(LEASE)
        transport.coordination.reap()
    transport.coordination.sweep()
    assert finish(transport, take(transport)) == ["running", "scheduled"]
    assert transport.results.state("expiring") is State.EXPIRED

    transport.submit([message("revoked")])
    assert transport.results.state("revoked") is State.REVOKED
    (letter,) = transport.operators.dead_letters()
    assert (letter.reason, letter.message.retries) == ("failed", 2)
    transport.operators.replay([letter.number])
    assert finish(transport, take(transport)) == ["dead"]
    assert transport.operators.depth() == []
    transport.close()


def test_the_schema_of_a_version_is_never_changed(path: Path, tmp_path: Path) -> None:
    """Fails when `schema.sql` is edited: add a step, then `python -m tests.faults.sqlite.older`."""
    load(NEWEST, path)
    fresh = tmp_path / "fresh.db"
    opened(fresh).close()

    def schema(path: Path) -> set[str]:
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        connection.close()
        return {" ".join(row[0].split()) for row in rows}

    assert schema(path) == schema(fresh)


# -- killed in the middle ---------------------------------------------------------------------------


def test_who_is_killed_while_the_file_is_made_leaves_one_that_can_be_opened(
    actor, path: Path
) -> None:
    assert actor("produce", "a", 1, env=KILLED).process.wait(20) == -9
    assert version(path) == 0

    actor("produce", "b", 1).until("done")

    assert version(path) == NEWEST
    transport = opened(path)
    assert transport.operators.find("b-0")
    transport.close()


def test_who_is_killed_in_an_upgrade_leaves_the_version_before_and_the_next_one_goes_on(
    actor, path: Path
) -> None:
    load(NEWEST, path)
    assert actor("open_as_the_next_version", env=KILLED).process.wait(20) == -9

    # Not half of it: the version before opens the file and works on.
    assert version(path) == NEWEST
    transport = opened(path, FakeClock(LEFT_AT + 1))
    assert finish(transport, take(transport, 1)) == ["urgent"]
    transport.close()

    actor("open_as_the_next_version").until("done")
    assert version(path) == NEWEST + 1
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT DISTINCT colour FROM message").fetchall() == [("red",)]
    connection.close()


# -- two versions at once ---------------------------------------------------------------------------


def test_a_process_of_the_version_before_goes_on_over_an_upgrade_and_a_new_one_is_refused(
    actor, path: Path
) -> None:
    old = opened(path)
    old.submit([message("before")])
    assert old.results.state("before") is State.QUEUED
    actor("open_as_the_next_version").until("done")

    old.submit([message("after")])
    assert old.results.state("after") is State.QUEUED
    assert finish(old, take(old)) == ["before", "after"]
    with pytest.raises(TransportError, match=rf"version {NEWEST + 1}.*up to {NEWEST}"):
        opened(path)
    old.close()


def test_what_the_version_before_writes_is_read_by_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = opened(path)
    with monkeypatch.context() as patch:
        steps = (*migrations.scripts(), NEXT_STEP)
        patch.setattr(migrations, "scripts", lambda: steps)
        new = opened(path)
        old.submit([message("old", headers={"by": "old"})])
        new.submit([message("new")])

        assert finish(new, take(new, 1)) == ["old"]
        assert finish(old, take(old, 1)) == ["new"]
        new.close()
    old.close()


def test_headers_nobody_here_knows_survive_whatever_happens_to_their_message(path: Path) -> None:
    clock = FakeClock(LEFT_AT)
    transport = opened(path, clock)
    headers = {"taskmq-of-tomorrow": {"deep": [1, None, "x"]}, "other": 7}
    transport.submit([message("a", headers=headers, eta=LEFT_AT + 1)])
    clock.advance(2)

    for verb in (Verb.RETRY, Verb.RELEASE, Verb.BURY):
        (taken,) = take(transport)
        assert dict(taken.message.headers) == headers
        transport.settle([Outcome(delivery=taken, verb=verb, reason="failed")])
    (letter,) = transport.operators.dead_letters()
    transport.operators.replay([letter.number])
    (taken,) = take(transport)

    assert dict(taken.message.headers) == headers
    transport.close()


def test_a_message_of_a_version_to_come_is_left_alone_until_one_comes_that_reads_it(
    path: Path,
) -> None:
    clock = FakeClock(LEFT_AT)
    transport = opened(path, clock)
    transport.submit([message("tomorrow", priority=9), message("today")])
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(
        """UPDATE message SET meta = '{"envelope": 7}' WHERE message_id = 'tomorrow'"""
    )

    # Longer than any number of deliveries would last.
    for _ in range(20):
        finish(transport, take(transport))
        clock.advance(61)
    assert transport.operators.dead_letters() == []
    assert connection.execute("SELECT message_id FROM message").fetchall() == [("tomorrow",)]

    connection.execute("UPDATE message SET meta = NULL")
    connection.close()
    clock.advance(61)
    assert finish(transport, take(transport)) == ["tomorrow"]
    transport.close()
