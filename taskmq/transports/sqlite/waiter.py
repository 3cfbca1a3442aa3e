"""One watch for each waiting thread, and what it has seen, so that no commit is slept over or met twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from taskmq.transports.sqlite import forks
from taskmq.transports.sqlite.store import Store
from taskmq.transports.sqlite.wake import Watch, readable, wait_for_change

# Every commit wakes every idle worker; at this distance (seconds) they are answered together.
_TOGETHER = 0.001


class _Mine(threading.local):
    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.seen: dict[str, tuple[int, int]] = {}
        self.woken_at = 0.0


class Waiter:
    """Lets threads wait for commits of others: other processes, and other threads of this one.

    A thread's first wait returns at once, so that nothing that came between its look and its wait is
    slept over; later ones know what it has seen.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mine = _Mine()
        forks.around(in_child=self._abandon)

    def close(self) -> None:
        """Let go of every watch as soon as no thread waits on it."""
        self._mine = _Mine()

    def _abandon(self) -> None:
        # An inherited descriptor would take the parent's events away.
        self.close()

    def wait(self, timeout: float, fds: Sequence[int] = (), *, purpose: str = "work") -> bool:
        """Until somebody else committed (True), one of `fds` is readable, or `timeout` seconds passed.

        Each `purpose` has seen commits of its own, so that a wait for a result hides no work.
        """
        mine = self._mine
        if mine.watch is None:
            mine.watch = Watch(f"{self._store.path}-wal")
        woken = False

        def changed() -> bool:
            nonlocal woken
            news = self._store.news()
            if news == mine.seen.get(purpose):
                return False
            mine.seen[purpose] = news
            woken = True
            return True

        rest = mine.woken_at + _TOGETHER - time.monotonic()
        if 0 < rest <= _TOGETHER and readable(fds, min(rest, timeout)):
            return False
        wait_for_change(mine.watch, changed, timeout, fds)
        if woken:
            mine.woken_at = time.monotonic()
        return woken
