"""No room on the device (rows 9, 10): a submit says so, what has run is settled (I1, I3, I11)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import taskmq.testing
from taskmq import App, State
from taskmq.errors import TransportFull
from taskmq.message import ResultRecord
from taskmq.transports.base import Outcome, ReserveRequest, Transport, Verb
from taskmq.transports.sqlite import SQLiteTransport, room
from tests.faults.sqlite.actors import QUEUES, message
from tests.faults.sqlite.small_disks import fill, lift_limit, limit_pages, small_disk

REQUEST = ReserveRequest(worker="w", queues=QUEUES, slots=4)


def submit_until_full(transport: SQLiteTransport, size: int) -> list[str]:
    """What was accepted before the first refusal."""
    accepted: list[str] = []
    for n in range(100_000):
        try:
            transport.submit([message(f"m{n}", body=b"x" * size)])
        except TransportFull:
            break
        accepted.append(f"m{n}")
    with pytest.raises(TransportFull, match="nothing was stored"):
        transport.submit([message("refused", body=b"x" * size)])
    return accepted


def drain(transport: SQLiteTransport) -> list[str]:
    """Take and finish everything, each with a result; what was finished."""
    finished: list[str] = []
    outcomes: list[Outcome] = []
    while True:
        turn = transport.turn(outcomes, REQUEST)
        assert turn.lost == ()
        finished += [outcome.delivery.message.task_id for outcome in outcomes]
        outcomes = [
            Outcome(
                delivery=d,
                verb=Verb.FINISH,
                result=ResultRecord(task_id=d.message.task_id, state=State.SUCCEEDED, body=b"1"),
            )
            for d in turn.deliveries
        ]
        if not outcomes and not turn.more:
            return finished


# -- a device as it says it is ----------------------------------------------------------------------


def test_the_last_of_the_device_is_kept_for_what_has_run(
    transport: SQLiteTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport.submit([message("a"), message("b")])
    total = 1 << 30
    free = [room.RESERVE - 1]
    monkeypatch.setattr(room, "_on_device", lambda _: (free[0], total))
    transport._store._room._until_look = 0

    with pytest.raises(TransportFull, match="are kept for what tasks leave"):
        transport.submit([message("refused")])
    assert drain(transport) == ["a", "b"]

    free[0] = room.RESERVE
    transport.submit([message("later")])
    assert drain(transport) == ["later"]


def test_what_messages_gave_back_inside_the_file_is_room_too(
    transport: SQLiteTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport.submit([message(f"m{n}", body=b"x" * 50_000) for n in range(10)])
    monkeypatch.setattr(room, "_on_device", lambda _: (0, 8 * 400_000))
    transport._store._room._until_look = 0
    with pytest.raises(TransportFull):
        transport.submit([message("refused")])

    assert len(drain(transport)) == 10

    transport.submit([message("later")])
    assert drain(transport) == ["later"]


def test_the_less_is_free_the_sooner_the_log_is_copied_back(
    transport: SQLiteTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = transport._store._writer
    assert connection is not None
    free = [1 << 40]
    monkeypatch.setattr(room, "_on_device", lambda _: (free[0], 1 << 40))
    seen = []
    for free[0] in (1 << 40, 60 << 20, 8 << 20, 0, 1 << 40):
        transport._store._room._until_look = 0
        transport.coordination.drop_duties("nobody")
        seen.append(connection.execute("PRAGMA wal_autocheckpoint").fetchone()[0])

    assert seen == [2000, 1024, 256, 16, 2000]


def test_the_log_has_its_length_before_others_fill_the_device(
    actor, transport: SQLiteTransport, path: Path
) -> None:
    log = os.stat(f"{path}-wal")

    assert log.st_size >= room.LOG
    assert log.st_blocks * 512 >= room.LOG
    # Our own descriptor of it has cost SQLite no lock: another process is not the last one to close.
    actor("produce", "a", 1).process.wait(20)
    assert Path(f"{path}-wal").exists()
    assert [d.message.task_id for d in transport.turn((), REQUEST).deliveries] == ["a-0"]


# -- a worker ---------------------------------------------------------------------------------------


def test_a_worker_keeps_what_has_run_and_takes_nothing_until_there_is_room(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = taskmq.testing.app(broker_url=f"sqlite:///{path}")
    runs: list[int] = []

    @app.task(name="big")
    def big(number: int) -> str:
        runs.append(number)
        return "x" * 100_000

    results = [big.delay(n) for n in range(6)]
    with taskmq.testing.worker(app) as worker:
        transport = worker.coordinator.transport
        assert isinstance(transport, SQLiteTransport)
        limit_pages(transport, 10)
        # Past the end of its lease, which cannot be renewed either.
        for _ in range(60):
            worker.step()
            worker.clock.advance(1)
        assert runs == [0]
        assert worker.coordinator.link.full
        assert "no room left" in caplog.text
        lift_limit(transport)
        worker.clock.advance(10)
        worker.run_until_idle()

    # Nobody took it away meanwhile, for that would need room as well.
    assert runs == list(range(6))
    assert {result.state for result in results} == {State.SUCCEEDED}
    app.close()


# -- a device that is full --------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "body"), [("3m", 2000), ("3m", 50_000)])
def test_a_small_device_filled_by_submits_still_settles_all_it_took(
    tmp_path: Path, size: str, body: int
) -> None:
    with small_disk(tmp_path / "small", size) as place:
        producer, worker = (SQLiteTransport(place / "q.db") for _ in range(2))
        producer.open()
        worker.open()
        accepted = submit_until_full(producer, body)

        assert len(accepted) * body > 1_000_000
        assert drain(worker) == accepted

        producer.submit([message("later")])
        assert drain(worker) == ["later"]
        worker.close()
        producer.close()


def test_a_device_that_others_filled_to_the_last_block_settles_and_takes_again_with_room(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "small", "8m") as place:
        transport = SQLiteTransport(place / "q.db")
        transport.open()
        names = [f"m{n}" for n in range(300)]
        for name in names:
            transport.submit([message(name, body=b"x" * 500)])
        transport.coordination.checkpoint()
        filler = fill(place)

        assert drain(transport) == names
        with pytest.raises(TransportFull):
            transport.submit([message("refused", body=b"x" * 900_000)])

        filler.unlink()
        transport.submit([message("later")])
        assert drain(transport) == ["later"]
        transport.close()


def test_a_log_that_could_not_be_copied_back_before_waits_for_room_and_loses_nothing(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "small", "8m") as place:
        app = App(broker_url=f"sqlite:///{place / 'q.db'}")
        transport = app.transport
        names = [f"m{n}" for n in range(60)]
        for name in names:
            transport.submit([message(name, body=b"x" * 9000)])
        filler = fill(place)
        finished = drain_until_full(transport)

        filler.unlink()
        while drain_one(transport):
            finished += 1
        # One was taken when its end could not be stored; it is held until its lease ends.
        held = sum(row.running for row in transport.operators.depth())
        assert (finished, held) in [(len(names), 0), (len(names) - 1, 1)]
        app.close()


def drain_until_full(transport: Transport) -> int:
    finished = 0
    try:
        while drain_one(transport):
            finished += 1
    except TransportFull:
        return finished
    pytest.fail("the device was never full")


def drain_one(transport: Transport) -> bool:
    """Take and finish one; False when there is none."""
    turn = transport.turn((), ReserveRequest(worker="w", queues=QUEUES, slots=1))
    transport.settle([Outcome(delivery=d, verb=Verb.FINISH) for d in turn.deliveries])
    return bool(turn.deliveries)
