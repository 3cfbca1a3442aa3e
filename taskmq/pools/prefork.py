"""The prefork pool, the default: one process per slot, one pipe per process.

A crash, a leak or a hard limit costs one child and never the worker. A lost child is noticed at once by
its pipe or its pidfd; its job ends as LOST with the signal's name. A child that cannot even start is
tried again after 1, 2, 4 … 30 seconds, one at a time, and nothing is reserved meanwhile.
"""

from __future__ import annotations

import logging
import selectors
from collections.abc import Sequence
from typing import TYPE_CHECKING

from taskmq.clock import Clock
from taskmq.codec import encode_failure, failure_line
from taskmq.errors import DecodeError
from taskmq.pools import frames
from taskmq.pools.base import Completion, Ending, Job, Pool
from taskmq.pools.child import ChildSettings
from taskmq.pools.launch import fork_child, spawn_child
from taskmq.pools.prefork_child import Child, Phase
from taskmq.pools.starts import Starts

if TYPE_CHECKING:
    from taskmq.app import App

log = logging.getLogger("taskmq.pool")

# A child that has not said it is ready by then is stuck in an import.
START_TIMEOUT = 60.0
# A child that was told to leave is killed when its exit hooks take longer.
LEAVE_TIMEOUT = 30.0
# How long idle children have for their exit hooks when the pool stops.
EXIT_GRACE = 2.0


class PreforkPool(Pool):
    """`size` processes. Raises nothing for what happens in them."""

    name = "prefork"
    enforces = frozenset({"soft", "hard", "terminate"})

    def __init__(
        self,
        app: App,
        size: int,
        *,
        clock: Clock,
        settings: ChildSettings,
        spawn: bool = False,
        max_tasks_per_child: int | None = None,
        max_memory_per_child: int | None = None,
    ) -> None:
        self.size = size
        self._app = app
        self._clock = clock
        self._settings = settings
        self._spawn = spawn
        self._max_tasks = max_tasks_per_child
        self._max_memory = max_memory_per_child
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, Child] = {}
        self._idle: list[Child] = []
        self._by_job: dict[int, Child] = {}
        self._ended: list[Completion] = []
        # What `ready` found, for the next look.
        self._events: list[tuple[selectors.SelectorKey, int]] = []
        self._starts = Starts(clock)
        self._stopped = False

    # -- the seam ---------------------------------------------------------------------------------

    def start(self) -> None:
        self._fill()

    def free(self) -> int:
        return len(self._idle)

    def up(self) -> bool:
        if self._idle or self._by_job:
            return True
        return any(c.phase is Phase.READY for c in self._children.values())

    def dispatch(self, job: Job) -> None:
        while self._idle:
            child = self._idle.pop()
            try:
                child.assign(job, self._clock.monotonic())
            except OSError:
                self._lost(child)
                continue
            except Exception as exc:
                # What a message holds may come from anybody: it ends alone (I10), nothing was sent.
                log.exception("task %s cannot be given to a child", job.message.task_id)
                self._idle.append(child)
                self._ended.append(
                    Completion(
                        number=job.number,
                        ending=Ending.UNREADABLE,
                        body=encode_failure(exc),
                        error=failure_line(exc),
                    )
                )
                return
            self._by_job[job.number] = child
            if child.unsent:
                self._watch(child, write=True)
            return
        self._ended.append(
            Completion(
                number=job.number, ending=Ending.NOT_STARTED, error="no child was there to run it"
            )
        )

    def poll(self) -> list[Completion]:
        if not self._stopped:
            self._look()
        ended, self._ended = self._ended, []
        return ended

    def ready(self) -> bool:
        self._events = self._selector.select(0)
        return bool(self._events)

    def _look(self) -> None:
        events, self._events = self._events or self._selector.select(0), []
        for key, mask in events:
            child: Child = key.data
            if child.phase is Phase.GONE:
                continue
            if mask & selectors.EVENT_WRITE:
                self._write(child)
            if mask & selectors.EVENT_READ:
                self._read(child, ended=key.fd == child.pidfd)
        self._timed_work()

    def fds(self) -> Sequence[int]:
        try:
            # epoll and kqueue are descriptors themselves: one to wait for, whatever the size.
            return (self._selector.fileno(),)
        except AttributeError:
            return [key.fd for key in self._selector.get_map().values()]

    def next_timer(self) -> float | None:
        times = [] if self._starts.retry_at is None else [self._starts.retry_at]
        for child in self._children.values():
            if child.phase is Phase.STARTING:
                times.append(child.started_at + START_TIMEOUT)
            if child.soft_at is not None:
                times.append(child.soft_at)
            if child.hard_at is not None:
                times.append(child.hard_at)
        return min(times) if times else None

    def cancel(self, number: int, reason: str) -> None:
        child = self._by_job.get(number)
        if child is None:
            return
        try:
            child.send(frames.pack(frames.CANCEL, [number, reason]))
        except OSError:
            return  # gone; its pipe says so
        if child.unsent:
            self._watch(child, write=True)

    def terminate(self, number: int, ending: Ending, reason: str) -> bool:
        child = self._by_job.get(number)
        if child is not None:
            child.kill(ending, reason)
        return child is not None

    def stop(self, *, hand_back: bool) -> None:
        self._stopped = True
        self._starts.retry_at = None
        for child in list(self._children.values()):
            if child.job is not None and hand_back:
                child.kill(Ending.HANDED_BACK, "the worker stopped while it ran")
            elif child.job is not None or child.phase is Phase.STARTING:
                child.kill(Ending.LOST, "the worker stopped")
            else:
                child.leave()
        self._idle.clear()
        self._wait_for_exits()
        for child in list(self._children.values()):
            self._lost(child)
        self._selector.close()

    def broken(self) -> str | None:
        return self._starts.broken

    def pids(self) -> list[int]:
        return list(self._children)

    def busy_pids(self) -> dict[int, int]:
        return {number: child.pid for number, child in self._by_job.items()}

    # -- children ---------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Start the children that are missing; only one at a time while starts fail."""
        phases = [c.phase for c in self._children.values()]
        missing = self.size - sum(phase is not Phase.LEAVING for phase in phases)
        missing = self._starts.allowed(missing, starting=Phase.STARTING in phases)
        for _ in range(missing):
            if not self._start_child():
                return

    def _start_child(self) -> bool:
        try:
            if self._spawn:
                started = spawn_child(self._settings)
            else:
                siblings = [c.sock.fileno() for c in self._children.values()]
                started = fork_child(self._app, self._settings, siblings)
        except OSError as exc:
            self._starts.failed(f"could not be started: {exc}")
            return False
        child = Child(started.pid, started.sock, started.process, self._clock.monotonic())
        self._children[child.pid] = child
        self._selector.register(child.sock, selectors.EVENT_READ, child)
        if child.pidfd is not None:
            self._selector.register(child.pidfd, selectors.EVENT_READ, child)
        return True

    def _ready(self, child: Child) -> None:
        if child.phase is not Phase.STARTING:
            return
        child.phase = Phase.READY
        self._idle.append(child)
        if self._starts.succeeded():
            self._fill()

    def _lost(self, child: Child) -> None:
        """A child's pipe or process ended: collect it, end its job, replace it."""
        phase = child.phase
        if child.pidfd is not None:
            self._selector.unregister(child.pidfd)
        self._selector.unregister(child.sock)
        how = child.reap()
        del self._children[child.pid]
        if child in self._idle:
            self._idle.remove(child)
        job = child.job
        if job is not None:
            self._by_job.pop(job.number, None)
            ending, reason = child.forced or (Ending.LOST, f"pool child {child.pid} {how}")
            self._ended.append(Completion(number=job.number, ending=ending, error=reason))
        if phase is Phase.LEAVING or self._stopped:
            return
        if phase is Phase.STARTING:
            self._starts.failed(how)
        elif child.forced is None:
            log.warning(
                "pool child %d %s",
                child.pid,
                how,
                extra={"event": "child.lost", "child": child.pid},
            )
        if self._starts.retry_at is None:
            self._fill()

    # -- pipes ------------------------------------------------------------------------------------

    def _watch(self, child: Child, *, write: bool) -> None:
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if write else 0)
        self._selector.modify(child.sock, mask, child)

    def _write(self, child: Child) -> None:
        try:
            child.flush()
        except OSError:
            self._lost(child)
            return
        if not child.unsent:
            self._watch(child, write=False)

    def _read(self, child: Child, *, ended: bool) -> None:
        if child.phase is Phase.GONE:
            return
        try:
            # Of a process that has ended everything is read that it still sent.
            frames_in = child.last() if ended else child.receive()
            for frame in frames_in or ():
                self._take(child, frame)
        except DecodeError as exc:
            # A task wrote to our descriptor. What follows cannot be trusted either.
            log.error("pool child %d sent something that is %s; it is killed", child.pid, exc)
            self._lost(child)
            return
        if frames_in is None or ended:
            self._lost(child)

    def _take(self, child: Child, frame: frames.Frame) -> None:
        if frame.kind == frames.READY:
            self._ready(child)
            return
        completion = frames.completion_of(frame)
        job = child.job
        if job is None or completion.number != job.number:
            return  # progress of a thread that outlived its job
        self._ended.append(completion)
        if completion.ending is Ending.PROGRESS:
            return
        del self._by_job[job.number]
        child.finish()
        measured = frame.meta if frame.kind == frames.DONE else {}
        if self._worn_out(child, completion, measured):
            child.leave()
            child.hard_at = self._clock.monotonic() + LEAVE_TIMEOUT
            self._fill()
        elif child.phase is Phase.READY and child.forced is None:
            # One that ended just before it was killed has its ending, and no other job.
            self._idle.append(child)

    def _worn_out(self, child: Child, completion: Completion, meta: dict[str, object]) -> bool:
        rss = meta.get("rss")
        return (
            (self._max_tasks is not None and child.done >= self._max_tasks)
            or (self._max_memory is not None and isinstance(rss, int) and rss > self._max_memory)
            or completion.recycle
            or bool(meta.get("leaky"))
        )

    # -- time -------------------------------------------------------------------------------------

    def _timed_work(self) -> None:
        now = self._clock.monotonic()
        if self._starts.retry_at is not None and self._starts.retry_at <= now:
            self._starts.retry_at = None
            self._fill()
        for child in list(self._children.values()):
            if child.pidfd is None and child.ended():
                self._read(child, ended=True)
            elif child.hard_at is not None and child.hard_at <= now:
                limit = child.job.time_limit if child.job else 0.0
                child.kill(Ending.TIMED_OUT, f"the time limit of {limit:g} s has passed")
            elif child.soft_at is not None and child.soft_at <= now:
                child.interrupt()
            elif child.phase is Phase.STARTING and child.started_at + START_TIMEOUT <= now:
                child.kill(Ending.LOST, "it did not get ready")

    def _wait_for_exits(self) -> None:
        deadline = self._clock.monotonic() + EXIT_GRACE
        while any(c.job is not None or c.phase is Phase.LEAVING for c in self._children.values()):
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return
            ready = self._selector.select(left)
            if not ready:
                return
            for key, mask in ready:
                child: Child = key.data
                if child.phase is not Phase.GONE and mask & selectors.EVENT_READ:
                    self._read(child, ended=key.fd == child.pidfd)
