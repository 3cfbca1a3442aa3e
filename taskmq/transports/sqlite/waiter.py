"""One watch for each waiting thread, and what it has seen, so that no commit is slept over or met twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from taskmq.bell import readable
from taskmq.transports.sqlite import forks
from taskmq.transports.sqlite.pace import Pace, for_work
from taskmq.transports.sqlite.store import Store
from taskmq.transports.sqlite.wake import Watch, wait_for_change


class _Mine(threading.local):
    def __init__(self) -> None:
        self.watch: Watch | None = None
        self.seen: dict[str, tuple[int, int]] = {}
        self.pace = for_work()
        self.commits = 0


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

    def found_work(self) -> None:
        """What this thread was woken for was there."""
        self._mine.pace.found()

    def wait(
        self,
        timeout: float,
        fds: Sequence[int] = (),
        *,
        purpose: str = "work",
        pace: Pace | None = None,
        every: float | None = None,
    ) -> bool:
        """Until somebody else committed (True), one of `fds` is readable, or `timeout` seconds passed.

        Each `purpose` ("work", "result") has seen commits of its own: a wait for a result hides no work.
        `pace` is the thread's own where none is given. With `every` a look is taken that often while waiting,
        and the first wait after a commit of our own, which no look tells, ends after so long.
        """
        mine = self._mine
        pace = mine.pace if pace is None else pace
        if mine.watch is None:
            mine.watch = Watch(f"{self._store.path}-wal")
        if every is not None:
            timeout = self._after_own(timeout, every)
        woken = False

        def changed() -> bool:
            nonlocal woken
            news = self._store.news()
            if news == mine.seen.get(purpose):
                return False
            mine.seen[purpose] = news
            woken = True
            return True

        rest = pace.rest()
        if rest > 0 and readable(fds, min(rest, timeout)):
            return False
        wait_for_change(mine.watch, changed, timeout, fds, every)
        if woken:
            pace.woken()
        return woken

    def _after_own(self, timeout: float, every: float) -> float:
        # What a reap or a follow-up of this process made ready is work like any other.
        commits = self._store.commits()
        if commits == self._mine.commits:
            return timeout
        self._mine.commits = commits
        return min(timeout, every)
