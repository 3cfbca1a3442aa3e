"""Those who act in a run: real workers with prefork children, and producers; who ends is replaced."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from tests.support.processes import Processes
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


class Supervisor:
    """A `taskmq worker` in a process group of its own."""

    def __init__(self, process: subprocess.Popen[str], directory: Path) -> None:
        self.process = process
        self.pid = process.pid
        self._log = directory / f"{process.pid}.jsonl"
        self.told_to_stop = False

    def works(self) -> bool:
        """Whether it lives, has begun to take messages and was not told to stop."""
        return self.process.poll() is None and not self.told_to_stop and self._log.exists()

    def children(self) -> list[int]:
        """Its pool children."""
        try:
            listed = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return []
        return [int(pid) for pid in listed.split()]


class Troupe:
    """Starts them, and starts them again."""

    def __init__(
        self, started: Processes, directory: Path, seed: int, *, mutant: str, workers: int
    ) -> None:
        self._started = started
        self._directory = directory
        self._seed = seed
        self._environment = {
            "PYTHONPATH": str(ROOT),
            "STRESS_DIR": str(directory),
            "STRESS_MUTANT": mutant,
        }
        self._number = 0
        self.supervisors = [self._supervisor() for _ in range(workers)]
        self.producers = [self._producer() for _ in range(2)]

    def _supervisor(self) -> Supervisor:
        arguments = ("-A", "tests.stress.project:app", "worker", "-l", "WARNING")
        process = self._started.taskmq(*arguments, env=self._environment, name="worker")
        return Supervisor(process, self._directory)

    def _producer(self) -> subprocess.Popen[str]:
        self._number += 1
        arguments = ("-m", "tests.stress.project", str(self._number), str(self._seed))
        return self._started.python(*arguments, env=self._environment, name="producer")

    def ready(self) -> bool:
        """Whether all have come up; who cannot fails the run."""
        self.mend()
        return all(supervisor.works() for supervisor in self.supervisors)

    def mend(self) -> None:
        """Replace who has ended; nobody may end by itself, or badly when told to."""
        for number, supervisor in enumerate(self.supervisors):
            code = supervisor.process.poll()
            if code is not None:
                expected = (-signal.SIGKILL, 0) if supervisor.told_to_stop else (-signal.SIGKILL,)
                assert code in expected, self._started.log(supervisor.process)
                self.supervisors[number] = self._supervisor()
        for number, producer in enumerate(self.producers):
            code = producer.poll()
            if code is not None:
                assert code == -signal.SIGKILL, self._started.log(producer)
                self.producers[number] = self._producer()

    def stop_producers(self) -> None:
        """Let them finish what they are at."""
        (self._directory / "enough").touch()
        for producer in self.producers:
            assert producer.wait(20) in (0, -signal.SIGKILL), self._started.log(producer)

    def mend_supervisors(self) -> None:
        """As `mend`, once the producers are through."""
        producers, self.producers = self.producers, []
        self.mend()
        self.producers = producers

    def stop_supervisors(self) -> None:
        """Tell all to stop, and see them off."""
        for supervisor in self.supervisors:
            if supervisor.process.poll() is None:
                supervisor.process.send_signal(signal.SIGTERM)
        for supervisor in self.supervisors:
            process = supervisor.process
            wait_until(lambda p=process: p.poll() is not None, 15, what="the end of a worker")  # type: ignore[misc]
            assert process.returncode == 0, self._started.log(process)
