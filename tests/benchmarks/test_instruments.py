"""The instruments themselves: verdicts, ratios, the document's table, and that a stopped tree is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks import compare
from tests.benchmarks.compare import BEGIN, END, main, medians, names, write
from tests.benchmarks.figures import FIGURES, Figure, asked
from tests.benchmarks.running import ROWS
from tests.benchmarks.table import markdown, text
from tests.benchmarks.tree import Tree, rss, stop
from tests.support.waiting import wait_until

RATE = Figure(row="r", key="k", what="rate", unit="/s", better="higher", target=100, times=5)
WAIT = Figure(row="r", key="k", what="wait", unit="ms", target=2)


@pytest.mark.parametrize(
    ("figure", "values", "reached"),
    [
        (RATE, {"taskmq": 100, "celery": 20}, True),
        (RATE, {"taskmq": 99, "celery": 1}, False),
        (RATE, {"taskmq": 100, "celery": 21}, False),
        # Five times of what was not measured cannot be told; what misses its own bound can.
        (RATE, {"taskmq": 100}, None),
        (RATE, {"taskmq": 99}, False),
        (RATE, {"celery": 20}, None),
        (WAIT, {"taskmq": 2.0}, True),
        (WAIT, {"taskmq": 2.1}, False),
        (replace(WAIT, target=None), {"taskmq": 2.0}, None),
    ],
)
def test_a_figure_is_reached_when_all_of_its_bounds_are(
    figure: Figure, values: dict[str, float], reached: bool | None
) -> None:
    assert figure.reached(values) is reached


def test_a_ratio_above_one_is_better_whichever_way_is_better() -> None:
    assert RATE.ratio({"taskmq": 10, "celery": 5}, "celery") == 2
    assert WAIT.ratio({"taskmq": 5, "celery": 10}, "celery") == 2
    assert WAIT.ratio({"taskmq": 5}, "celery") is None


def test_every_figure_belongs_to_a_row_and_every_row_has_a_figure() -> None:
    assert {figure.row for figure in FIGURES} == set(ROWS)


def test_peers_are_asked_only_for_what_they_can_do() -> None:
    assert all(asked(row, "taskmq") for row in ROWS)
    assert not asked("claim", "celery")
    assert not asked("submit-full", "celery")
    assert not asked("jump-16", "huey")


def test_medians_leave_out_the_rounds_that_failed() -> None:
    figure = next(f for f in FIGURES if f.row == "submit")

    found = medians({("submit", "taskmq"): [{"rate": 1.0}, {}, {"rate": 3.0}, {"rate": 9.0}]})

    assert found == {figure: {"taskmq": 3.0}}


def test_the_tables_say_what_was_missed_and_what_a_peer_cannot_do() -> None:
    figure = next(f for f in FIGURES if f.row == "submit")
    results = {figure: {"taskmq": 11_000.0, "celery": 1_000.0}}

    for table in (
        text(results, ["taskmq", "celery", "huey"]),
        markdown(results, ["taskmq", "celery"]),
    ):
        assert "11,000" in table
        assert "≥ 12,000, ≥ 5× Celery" in table
        assert "NO" in table
    assert "–" in text(results, ["taskmq", "celery", "huey"])


def test_the_table_goes_between_the_marks_of_a_document(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")

    write(page, "new")

    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_a_document_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("mine\n")

    with pytest.raises(SystemExit):
        write(page, "new")
    assert page.read_text() == "mine\n"


def test_a_row_is_chosen_by_its_name_or_its_beginning() -> None:
    assert names("drain,idle", list(ROWS), "row") == [
        "drain-prefork",
        "drain-threads",
        "drain-solo",
        "idle",
    ]
    with pytest.raises(ValueError):
        names("nothing", list(ROWS), "row")


@pytest.mark.parametrize("choice", [("--only", "drian"), ("--peers", "taskmq,celry")])
def test_a_row_or_peer_that_does_not_exist_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], choice: tuple[str, str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compare", *choice])
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert choice[1].split(",")[-1] in capsys.readouterr().err


def test_without_a_redis_it_is_said_which_peers_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("redis")
    pytest.importorskip("celery")
    measured: list[str] = []
    monkeypatch.setattr(
        sys, "argv", ["compare", "--only", "import", "--redis", "redis://127.0.0.1:1"]
    )
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(
        compare, "collect", lambda samples, rows, peers, *_, **__: measured.extend(peers)
    )

    main()

    assert "no Redis at redis://127.0.0.1:1: without celery" in capsys.readouterr().err
    assert "taskmq" in measured
    assert "celery" not in measured


# A parent that dies of TERM and leaves a child that does not.
_DEAF = """
import signal, subprocess, sys
subprocess.Popen([sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"])
signal.pause()
"""


def test_a_stopped_tree_leaves_no_child_behind() -> None:
    parent = subprocess.Popen([sys.executable, "-c", _DEAF])
    tree = Tree(parent.pid)
    try:
        wait_until(lambda: len(tree.pids()) == 2, what="a child")
        child = tree.pids()[1]
        wait_until(lambda: _ignores_term(child), what="a deaf child")
    finally:
        stop(parent)

    assert rss(child) == 0
    assert parent.returncode is not None


def _ignores_term(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) & 1 << 14)


def test_a_tree_counts_what_its_processes_use() -> None:
    tree = Tree(os.getpid())

    assert 0 < tree.pss() <= tree.rss()
    # Memory moves between two looks.
    assert tree.rss() >= 0.9 * rss(os.getpid()) > 0
    assert tree.cpu() > 0
