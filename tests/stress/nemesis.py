"""Who kills, stops and terminates (reliability §5): at random from a seed, while the others work."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from tests.stress.log import Log
from tests.stress.terms import LEASE
from tests.stress.troupe import Supervisor, Troupe
from tests.support.waiting import wait_until

#: What is done how often.
WEIGHTS = {"child": 50, "supervisor": 20, "stop": 15, "term": 10, "producer": 5}
EVERY = (0.1, 0.35)
# From a little longer than a lease to long enough for others to have run what it held.
STOPPED_FOR = (1.5 * LEASE, 4 * LEASE)
# One who had nothing in hand when it was stopped is let go then.
OVERTAKEN_IN = (5 * LEASE, 5 * LEASE)


class Nemesis:
    """Acts on a troupe until there were enough kills and enough time has passed."""

    def __init__(
        self,
        troupe: Troupe,
        log: Log,
        seed: int,
        *,
        weights: Mapping[str, int] = WEIGHTS,
        overtaken: Callable[[int], bool] | None = None,
    ) -> None:
        """With `overtaken` only supervisors are stopped, not their children, and each until that is true of
        it: those are the `stops` that count."""
        self._troupe = troupe
        self._log = log
        self._random = Random(f"nemesis-{seed}")
        self._weights = weights
        self._overtaken = overtaken
        self._stopped: dict[int, tuple[float, bool]] = {}
        self.kills = 0
        #: How many were stopped and went on in their time.
        self.stops = 0
        self.done: dict[str, int] = dict.fromkeys(WEIGHTS, 0)

    def act(self, *, seconds: float, kills: int, stops: int, patience: float = 30.0) -> None:
        """For so long, and until so many were killed, and stopped for their whole time."""
        begun = time.monotonic()
        next_at = begun

        def over() -> bool:
            nonlocal next_at
            now = time.monotonic()
            self._troupe.mend()
            self._continue(now)
            if now >= next_at:
                next_at = now + self._random.uniform(*EVERY)
                self._once()
            return now - begun >= seconds and self.kills >= kills and self.stops >= stops

        wait_until(over, patience, every=0.02, what=f"{kills} kills")

    def heal(self) -> None:
        """Let everything that was stopped go on."""
        self._continue(float("inf"))

    def _once(self) -> None:
        (deed,) = self._random.choices(list(self._weights), list(self._weights.values()))
        working = [s for s in self._troupe.supervisors if s.pid not in self._stopped and s.works()]
        deeds: dict[str, Callable[[Supervisor], bool]] = {
            "child": self._kill_child,
            "supervisor": self._kill_supervisor,
            "stop": self._stop,
            "term": self._terminate,
        }
        if deed == "producer":
            done = self._kill_producer()
        else:
            done = bool(working) and deeds[deed](self._random.choice(working))
        self.done[deed] += done

    def _kill_child(self, supervisor: Supervisor) -> bool:
        children = supervisor.children()
        return bool(children) and self._kill(self._random.choice(children), "child")

    def _kill_supervisor(self, supervisor: Supervisor) -> bool:
        return self._kill(supervisor.pid, "supervisor")

    def _kill_producer(self) -> bool:
        return self._kill(self._random.choice(self._troupe.producers).pid, "producer")

    def _kill(self, pid: int, role: str) -> bool:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        wait_until(lambda: is_dead(pid), 10, every=0.002, what=f"the death of {role} {pid}")
        self._log.write("killed", victim=pid, role=role)
        self.kills += 1
        return True

    def _stop(self, supervisor: Supervisor) -> bool:
        if self._stopped:
            return False  # somebody has to take over
        whole = self._random.random() < 0.5 and self._overtaken is None
        self._log.write("stopping", victim=supervisor.pid, whole=whole)
        _signal(supervisor.pid, signal.SIGSTOP, whole=whole)
        longest = STOPPED_FOR if self._overtaken is None else OVERTAKEN_IN
        until = time.monotonic() + self._random.uniform(*longest)
        self._stopped[supervisor.pid] = (until, whole)
        return True

    def _continue(self, now: float) -> None:
        for pid, (until, whole) in list(self._stopped.items()):
            overtaken = self._overtaken is not None and self._overtaken(pid)
            if until <= now or overtaken:
                del self._stopped[pid]
                self.stops += overtaken or self._overtaken is None
                self._log.write("continued", victim=pid)
                _signal(pid, signal.SIGCONT, whole=whole)

    def _terminate(self, supervisor: Supervisor) -> bool:
        self._log.write("terminated", victim=supervisor.pid)
        supervisor.told_to_stop = True
        os.kill(supervisor.pid, signal.SIGTERM)
        return True


def _signal(pid: int, number: signal.Signals, *, whole: bool) -> None:
    try:
        if whole:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended meanwhile


def is_dead(pid: int) -> bool:
    """Gone, or a zombie: in a container nobody may collect it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat[stat.rindex(")") + 2] in "ZX"
