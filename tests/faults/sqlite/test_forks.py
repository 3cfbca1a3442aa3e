"""A forked child never touches what its parent has open (reliability fact 4)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

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
