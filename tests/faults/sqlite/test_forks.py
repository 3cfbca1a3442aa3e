"""A forked child never touches what its parent has open (reliability fact 4)."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

from taskmq.transports.sqlite import SQLiteTransport
from tests.faults.sqlite.actors import QUEUES, message
from tests.support.waiting import wait_until

PER_CHILD = 30


def test_parent_and_children_go_on_with_one_transport_object(actor, path: Path) -> None:
    forking = actor("fork_and_submit", PER_CHILD)

    codes = forking.until("codes", 40)

    assert codes == "[0, 0, 0, 0, 0]"
    connection = sqlite3.connect(path)
    stored = {row[0] for row in connection.execute("SELECT message_id FROM message")}
    assert {f"child{c}-{n}" for c in range(5) for n in range(PER_CHILD)} <= stored
    assert {"before", "after"} <= stored
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_child_submits_though_another_thread_was_making_an_id(actor) -> None:
    assert actor("fork_while_an_id_is_made").until("code", 20) == "0"


def test_a_child_outlives_the_parent_whose_transport_it_uses(actor, path: Path) -> None:
    parent = actor("leave_a_child")
    parent.process.wait(20)
    (child,) = wait_until(lambda: parent.said("child"))
    # Others come and go: the last one to close a database removes its log.
    for name in ("other", "another"):
        transport = SQLiteTransport(path)
        transport.open()
        transport.submit([message(name)])
        transport.close()

    os.kill(int(child), signal.SIGUSR1)

    assert wait_until(lambda: parent.said("found"), 20) == ["5"], parent.lines()
    transport = SQLiteTransport(path)
    transport.open()
    stored = {peeked.message.task_id for peeked in transport.operators.peek(QUEUES, 10)}
    transport.close()
    assert stored == {"parent", "other", "another", "early", "late"}
