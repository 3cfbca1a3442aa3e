"""One measurement of one peer, in a process of its own: a fresh folder, fresh connections, nothing left.

    python -m tests.benchmarks.running ROW PEER FOLDER [--redis URL] [--quick]

prints its figures as one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.benchmarks import claims, flow, footprint, waits
from tests.benchmarks.peers import PEERS, Peer, Project

ROOT = Path(__file__).resolve().parents[2]
_LONGEST = 900.0

Figures = dict[str, float]
ROWS: Mapping[str, Callable[[Project], Figures]] = {
    "submit": flow.submit,
    "submit-full": flow.submit_full,
    "drain-prefork": flow.drain("prefork", 2),
    "drain-threads": flow.drain("threads", 8),
    "drain-solo": flow.drain("solo", 1),
    "idle": waits.idle,
    "jump-4": waits.jump(4),
    "jump-16": waits.jump(16),
    "claim": claims.claim,
    "cpu": footprint.idle_cpu,
    "memory": footprint.memory,
    "import": footprint.importing,
    "ready": footprint.ready,
}


def measure(row: str, peer: Peer, *, redis: str = "", quick: bool = False) -> Figures:
    """Run a row for a peer in a process of its own and return its figures.

    Raises `RuntimeError` with the end of its output and of the worker's log when it fails.
    """
    with tempfile.TemporaryDirectory(prefix="taskmq-bench-") as folder:
        command = [sys.executable, "-m", "tests.benchmarks.running", row, peer.name, folder]
        command += ["--redis", redis] if redis else []
        command += ["--quick"] if quick else []
        with subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=_LONGEST)
            except subprocess.TimeoutExpired as exc:
                raise RuntimeError(f"{row} of {peer.title} took over {_LONGEST:g} s") from exc
            finally:
                _kill_group(process.pid)
        if process.returncode:
            log = Path(folder) / "worker.log"
            tail = log.read_text(errors="replace")[-1500:] if log.exists() else ""
            raise RuntimeError(f"{row} of {peer.title} failed:\n{err[-1500:]}\n{tail}")
        figures: Figures = json.loads(out.splitlines()[-1])
        return figures


def _kill_group(leader: int) -> None:
    """Also when the leader is gone: a worker may outlive a producer that was killed."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--redis", default="")
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    project = Project(PEERS[asked.peer], asked.folder, redis=asked.redis, quick=asked.quick)
    print(json.dumps(ROWS[asked.row](project)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
