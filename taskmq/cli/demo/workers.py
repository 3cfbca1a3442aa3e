"""The demo's worker processes: real ones, started as a user would, and every one of them ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from taskmq.app import App
from taskmq.cli.demo.app import SOURCES, STORE, YIELDING
from taskmq.errors import WorkerLost

# A cold start on a slow machine; a warm one takes a fraction of a second.
_READY_WITHIN = 30.0
_STOP_WITHIN = 10.0


class Workers:
    """Workers of one round, with their logs beside the store."""

    def __init__(self, folder: Path, store: Path, sources: Path, *, yielding: bool) -> None:
        self._folder = folder
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("TASKMQ_")},
            STORE: str(store),
            SOURCES: str(sources),
            YIELDING: "on" if yielding else "off",
        }
        self._label = "on" if yielding else "off"
        self._started: list[tuple[subprocess.Popen[bytes], Path]] = []

    @contextmanager
    def running(self, app: App, count: int, prefetch: int) -> Iterator[None]:
        """Start `count` workers of one slot, wait until they poll, and stop them at the end."""
        with ExitStack() as stack:
            stack.callback(self.stop)
            for number in range(1, count + 1):
                self._start(f"worker-{number}", prefetch)
            self._wait_until_ready(app, count)
            yield

    def _start(self, name: str, prefetch: int) -> None:
        log = self._folder / f"yielding-{self._label}-{name}.log"
        command = [sys.executable, "-m", "taskmq", "-A", "taskmq.cli.demo.project", "worker"]
        command += ["--hostname", name, "--concurrency", "1", "--prefetch", str(prefetch)]
        if sys.platform == "win32":
            command += ["--pool", "threads"]
        with log.open("wb") as out:
            process = subprocess.Popen(  # noqa: S603 - our own command line, no shell
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                # Ctrl-C is ours: the workers are stopped in order.
                start_new_session=True,
            )
        self._started.append((process, log))

    def _wait_until_ready(self, app: App, count: int) -> None:
        deadline = time.monotonic() + _READY_WITHIN
        while len(app.transport.coordination.workers()) < count:
            self.check()
            if time.monotonic() > deadline:
                raise WorkerLost(f"the workers did not start within {_READY_WITHIN:g} s")
            app.transport.wait(0.05)

    def check(self) -> None:
        """Raise `WorkerLost` with the end of its log when a worker has ended by itself."""
        for process, log in self._started:
            code = process.poll()
            if code is not None:
                tail = log.read_text(errors="replace").strip().splitlines()[-15:]
                raise WorkerLost("\n".join([f"a worker ended with exit code {code}:", *tail]))

    def stop(self) -> None:
        """Ask them to stop, then insist; idempotent."""
        for process, _ in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _STOP_WITHIN
        for process, _ in self._started:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._kill(process)
                process.wait()
        self._started.clear()

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        if hasattr(os, "killpg"):
            # The whole group: a killed worker cannot take its pool children along.
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
