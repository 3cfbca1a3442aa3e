"""`taskmq demo`, small: real workers, real files, everything accounted for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import CommandLine, environment

SMALL = ["demo", "--files", "60", "--requests", "12", "--prefetch", "8"]


@pytest.mark.timeout(120)
def test_the_demo_gives_every_result_twice_and_measures_each_priority(tmp_path: Path) -> None:
    demo = CommandLine(tmp_path)

    answer = json.loads(demo(*SMALL, "--json"))

    assert answer["complete"] is True
    assert answer["summary"]["files"] == 60
    for played in answer["rounds"].values():
        assert played["submitted"] == played["succeeded"] == 72
        assert [w["priority"] for w in played["waits"]] == [9, 5, 0, -5]
        assert [w["count"] for w in played["waits"]] == [4, 4, 4, 60]


@pytest.mark.timeout(120)
def test_the_demo_reads_well_in_a_pipe_and_cleans_up(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "taskmq", *SMALL],
        cwd=tmp_path,
        env={**environment(), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "P9 urgent" in done.stdout
    assert "All 144 tasks of both rounds succeeded" in done.stdout
    assert os.listdir(tmp_path) == []


@pytest.mark.timeout(120)
def test_a_demo_whose_workers_cannot_start_says_why_and_keeps_their_logs(tmp_path: Path) -> None:
    # Ends every process whose command line has the word "worker", before anything of ours is imported.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nif 'worker' in sys.orig_argv:\n    os._exit(7)\n"
    )
    own = environment()
    done = subprocess.run(
        [sys.executable, "-m", "taskmq", *SMALL],
        cwd=tmp_path,
        env={**own, "TMPDIR": str(tmp_path), "PYTHONPATH": f"{tmp_path}:{own['PYTHONPATH']}"},
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert done.returncode == 1
    assert "a worker ended with exit code 7" in done.stderr
    assert f"kept in {tmp_path}" in done.stderr
    assert "Traceback" not in done.stderr
