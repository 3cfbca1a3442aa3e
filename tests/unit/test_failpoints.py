"""Failpoints: what they do when armed, that they do nothing otherwise, and that the product has them all."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from taskmq import failpoints
from taskmq.errors import ConfigError
from taskmq.failpoints import Failpoint, FailpointReached, failpoint, parse

PACKAGE = Path(failpoints.__file__).parent
PASS = """
import sys
from taskmq.failpoints import Failpoint, failpoint
for number in range(int(sys.argv[1])):
    print(number, flush=True)
    failpoint(Failpoint.AFTER_CLAIM)
print("went on")
"""


def passing(spec: str, times: int = 1) -> subprocess.CompletedProcess[str]:
    """A process that passes `after_claim` so many times with this armed."""
    return subprocess.run(
        [sys.executable, "-c", PASS, str(times)],
        env={**os.environ, failpoints.VARIABLE: spec},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def called_points() -> set[str]:
    """The names of every `failpoint(Failpoint.X)` in the package."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "failpoint":
                found |= {ast.unparse(argument).rpartition(".")[2] for argument in node.args}
    return found


def test_the_product_passes_every_point_there_is() -> None:
    assert called_points() == {point.name for point in Failpoint}


def test_unarmed_every_point_is_passed_without_a_look() -> None:
    assert failpoint.__code__.co_names == ()
    for point in Failpoint:
        failpoint(point)


def test_kill_ends_the_process_by_sigkill() -> None:
    done = passing("after_claim=kill")

    assert done.returncode == -signal.SIGKILL
    assert done.stdout == "0\n"


def test_exit_ends_the_process_with_code_1_and_no_traceback() -> None:
    done = passing("after_claim=exit")

    assert (done.returncode, done.stdout, done.stderr) == (1, "0\n", "")


def test_raise_raises_a_fault_that_names_the_point() -> None:
    with pytest.raises(FailpointReached, match="after_claim"):
        parse("after_claim=raise")[Failpoint.AFTER_CLAIM].passed()


def test_stop_stops_the_process_until_it_is_continued() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PASS, "1"],
        env={**os.environ, failpoints.VARIABLE: "after_claim=stop"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=30)
        assert out == "0\nwent on\n"
    finally:
        process.kill()
        process.wait(10)


def test_sleep_sleeps_that_long(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)

    parse("in_settle=sleep:0.25")[Failpoint.IN_SETTLE].passed()

    assert slept == [0.25]


def test_only_the_nth_passage_is_hit() -> None:
    done = passing("after_claim=kill#3", times=5)

    assert done.returncode == -signal.SIGKILL
    assert done.stdout == "0\n1\n2\n"


def test_a_marker_file_lets_it_happen_once_over_restarts(tmp_path: Path) -> None:
    spec = f"after_claim=kill@{tmp_path / 'once'}"

    assert passing(spec).returncode == -signal.SIGKILL
    assert (tmp_path / "once").exists()
    assert passing(spec).stdout == "0\nwent on\n"


def test_another_point_than_the_armed_ones_is_passed() -> None:
    assert passing("in_reap=kill; in_settle=kill").stdout == "0\nwent on\n"


def test_several_points_are_armed_at_once() -> None:
    assert set(parse("in_reap=kill; in_settle=sleep:1#2@/x y/z;")) == {
        Failpoint.IN_REAP,
        Failpoint.IN_SETTLE,
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("after_claim", "POINT=ACTION"),
        ("after_claim=", "POINT=ACTION"),
        ("after_clam=kill", "no point 'after_clam'; one of in_submit"),
        ("after_claim=explode", "no action 'explode'; one of kill"),
        ("after_claim=sleep", "after_claim=sleep:SECONDS"),
        ("after_claim=sleep:1.2.3", "after_claim=sleep:SECONDS"),
        ("after_claim=kill:3", "only sleep takes seconds"),
        ("after_claim=kill#0", "count from 1"),
        ("after_claim=kill;after_claim=exit", "given twice"),
    ],
)
def test_a_text_that_means_nothing_is_refused(spec: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(spec)
    assert said in str(refused.value)
    assert failpoints.VARIABLE in str(refused.value)


def test_a_process_with_a_wrong_text_does_not_start() -> None:
    done = passing("after_clam=kill")

    assert done.returncode == 1
    assert "no point 'after_clam'" in done.stderr
