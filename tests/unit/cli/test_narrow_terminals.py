"""Tables on a terminal of 80 columns and less: what a person must copy is whole, and no line wraps."""

from __future__ import annotations

import pytest

from taskmq.cli import output
from taskmq.cli.text import table, width
from taskmq.cli.views import dlq, peek, status
from taskmq.message import DeadLetter
from taskmq.transports.operators import Depth, Peeked, QueueInfo
from tests.unit.cli.values import NOW, message, worker

ID = "01M8Q1755H88YJJXCJX2354239"
LONG = "shop.billing.tasks.send_the_monthly_invoice"


def letter(task: str = LONG) -> DeadLetter:
    return DeadLetter(
        number=1234,
        message=message(task_id=ID, task=task, queue="invoices-and-mail"),
        reason="crash-loop",
        error="WorkerLost: delivered 5 times, and none of them came to an end",
        died_at=NOW - 724,
        deliveries=5,
        yields=0,
    )


def peeked(task: str = LONG, deliveries: int = 0) -> Peeked:
    return Peeked(
        message=message(task_id=ID, task=task),
        effective=0,
        visible_at=NOW - 61,
        seq=40_321,
        deliveries=deliveries,
        yields=0,
        yieldable=True,
    )


@pytest.mark.parametrize("columns", [72, 80, 100, 120])
def test_dead_letters_fit_and_keep_their_ids(columns: int) -> None:
    lines = dlq.lines([letter()] * 3, NOW, columns)

    assert max(map(width, lines)) <= columns
    assert sum(ID in line for line in lines) == 3
    assert sum("invoices-and-mail" in line for line in lines) == 3


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize("deliveries", [0, 2])
def test_the_next_messages_fit_and_keep_their_ids(columns: int, deliveries: int) -> None:
    lines = peek.lines([peeked(), peeked(deliveries=deliveries)], NOW, columns)

    assert max(map(width, lines)) <= columns
    assert sum(ID in line for line in lines) == 2


def test_a_row_is_one_line_where_it_fits() -> None:
    lines = peek.lines([peeked("shop.send")], NOW, 80)

    assert len(lines) == 2
    assert lines[1].split()[3:5] == ["shop.send", ID]


@pytest.mark.parametrize("lines", [dlq.lines([letter()], NOW), peek.lines([peeked()], NOW)])
def test_in_a_pipe_a_row_is_one_line_and_nothing_is_cut(lines: list[str]) -> None:
    assert len(lines) == 2
    assert LONG in lines[1]
    assert ID in lines[1]
    assert "…" not in "".join(lines)


def test_status_keeps_the_names_of_queues_and_workers() -> None:
    queue = "invoices-of-all-customers-in-the-north"
    name = "billing-worker-7@the-long-name-of-it"
    seen = status.gather(
        where="t.db",
        now=NOW,
        depths=[Depth(queue, 0, ready=3)],
        queues=[QueueInfo(queue, paused=True)],
        workers=[worker(name=name, queues=(queue, "default"))],
        dead=0,
        starvation_after=300,
    )

    for lines in (status.by_queue(seen, 80), status.worker_lines(seen, 80)):
        assert max(map(width, lines)) <= 80
        assert any(queue in line for line in lines)
        assert "…" not in "".join(lines)


def test_the_second_line_has_a_header_of_its_own_and_gives_way_too() -> None:
    rows = [(7, "a.task", "an-id", "an error that says far too much to fit")]

    lines = table(["#", "TASK", "ID", "ERROR"], rows, columns=30, elastic=(3,), below=(2, 3))

    assert lines[0].split() == ["#", "TASK"]
    assert lines[1].split() == ["ID", "ERROR"]
    assert lines[2].split() == ["7", "a.task"]
    assert lines[3].startswith("    an-id  an error")
    assert width(lines[3]) <= 30
    assert lines.heading == 2


def test_an_empty_second_line_is_left_out() -> None:
    rows = [("an-id-that-is-long", "", "x"), ("another-id-just-as", "a note", "y")]

    lines = table(["ID", "NOTES", "MORE"], rows, columns=24, below=(1,))

    assert [line.strip() for line in lines[2:]] == [
        "an-id-that-is-long  x",
        "another-id-just-as  y",
        "a note",
    ]


def test_messages_beside_the_answer_break_between_words_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "neither the application nor the store knows a queue 'mial'. Did you mean 'mail'?"
    monkeypatch.setenv("COLUMNS", "40")

    output.complain(said)
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    output.complain(said)

    piped, *wrapped = capsys.readouterr().err.splitlines()
    assert piped == f"Error: {said}"
    assert " ".join(wrapped) == piped
    assert max(map(len, wrapped)) <= 40
