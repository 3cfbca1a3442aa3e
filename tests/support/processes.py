"""Real processes for tests: started in their own group, and every one of them reaped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


class Processes:
    """Starts processes and kills what is left of their groups at the end."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self._started: list[subprocess.Popen[str]] = []

    def python(
        self, *args: str, env: Mapping[str, str] | None = None, name: str = ""
    ) -> subprocess.Popen[str]:
        """Start `python ARGS` in `cwd`; its output goes to `<name>.log` there (both streams)."""
        return self.run([sys.executable, *args], env=env, name=name)

    def taskmq(
        self, *args: str, env: Mapping[str, str] | None = None, name: str = ""
    ) -> subprocess.Popen[str]:
        """Start the command line as a user would."""
        return self.python("-m", "taskmq", *args, env=env, name=name or "taskmq")

    def run(
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, name: str = ""
    ) -> subprocess.Popen[str]:
        number = len(self._started)
        log = self.cwd / f"{name or 'process'}-{number}.log"
        with log.open("w") as out, heard_signals():
            process = subprocess.Popen(
                list(command),
                cwd=self.cwd,
                env={**os.environ, "PYTHONPATH": str(self.cwd), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        process.log_path = log  # type: ignore[attr-defined]
        self._started.append(process)
        return process

    def log(self, process: subprocess.Popen[str]) -> str:
        """What a process has printed so far."""
        return process.log_path.read_text(errors="replace")  # type: ignore[attr-defined,no-any-return]

    def close(self) -> None:
        for process in self._started:
            try:
                # The whole group, also when its leader is gone: pool children may be left.
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait(timeout=10)


@contextmanager
def heard_signals() -> Iterator[None]:
    """What is started here hears INT and QUIT, also where a script runs the tests in the background.

    A shell without job control ignores both for its background jobs, and a child inherits that.
    """
    numbers = (signal.SIGINT, signal.SIGQUIT) if _on_main_thread() else ()
    deaf = [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]
    try:
        for number in deaf:
            signal.signal(number, signal.SIG_DFL)
        yield
    finally:
        for number in deaf:
            signal.signal(number, signal.SIG_IGN)


def _on_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def processes(cwd: Path) -> Iterator[Processes]:
    """A `Processes` whose every process is gone at the end of the block."""
    started = Processes(cwd)
    try:
        yield started
    finally:
        started.close()
