"""One child as the coordinator sees it: its process, its pipe, the job it runs and that job's limits."""

from __future__ import annotations

import enum
import os
import signal
import socket
import subprocess
from collections.abc import Iterator

from taskmq.pools import frames
from taskmq.pools.base import Ending, Job


class Phase(enum.Enum):
    """Where a child stands."""

    STARTING = "starting"
    READY = "ready"
    LEAVING = "leaving"  # told to exit; gets no job any more
    GONE = "gone"


class Child:
    """Sends never block: what the pipe does not take waits in `unsent` until it is writable."""

    __slots__ = (
        "done",
        "forced",
        "hard_at",
        "job",
        "phase",
        "pid",
        "pidfd",
        "process",
        "reader",
        "sock",
        "soft_at",
        "started_at",
        "status",
        "unsent",
    )

    def __init__(
        self,
        pid: int,
        sock: socket.socket,
        process: subprocess.Popen[bytes] | None,
        now: float,
    ) -> None:
        sock.setblocking(False)
        self.pid = pid
        self.sock = sock
        self.process = process
        self.pidfd = _open_pidfd(pid)
        self.phase = Phase.STARTING
        self.started_at = now
        self.done = 0
        self.job: Job | None = None
        self.soft_at: float | None = None
        self.hard_at: float | None = None
        # How its job ends when we kill it, and why.
        self.forced: tuple[Ending, str] | None = None
        self.reader = frames.FrameReader(from_child=True)
        self.unsent = bytearray()
        self.status: int | None = None

    def assign(self, job: Job, now: float) -> None:
        """Give it a job. Raises `OSError` when it is gone."""
        self.send(frames.pack_job(job))
        self.job = job
        self.soft_at = None if job.soft_time_limit is None else now + job.soft_time_limit
        self.hard_at = None if job.time_limit is None else now + job.time_limit

    def finish(self) -> None:
        """Its job has ended."""
        self.job = None
        self.soft_at = self.hard_at = None
        self.done += 1

    def send(self, data: bytes) -> None:
        """Send a frame, or as much as goes now. Raises `OSError` when the child is gone."""
        if not self.unsent:
            try:
                sent = self.sock.send(data)
            except BlockingIOError:
                sent = 0
            data = data[sent:]
        self.unsent += data

    def flush(self) -> None:
        """Send more of what did not go at once."""
        try:
            sent = self.sock.send(self.unsent)
        except BlockingIOError:
            return
        del self.unsent[:sent]

    def receive(self) -> list[frames.Frame] | None:
        """Frames that have come; None at the end of the pipe. Raises `DecodeError` for anything else."""
        try:
            data = self.sock.recv(self.reader.room)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self.reader.feed(data) if data else None

    def last(self) -> Iterator[frames.Frame]:
        """Of a process that has ended: what it still sent, to the end. Raises `DecodeError` as `receive`."""
        while True:
            try:
                # A process of its task may still hold the other end: then there is no end to come to.
                data = self.sock.recv(self.reader.room)
            except OSError:
                return
            if not data:
                return
            yield from self.reader.feed(data)

    def leave(self) -> None:
        """Tell it to exit when its job, if any, has ended."""
        self.phase = Phase.LEAVING
        try:
            self.send(frames.pack(frames.EXIT))
        except OSError:
            pass  # gone already; its pipe says so

    def interrupt(self) -> None:
        """Raise the soft limit inside its task."""
        self.soft_at = None
        self._signal(signal.SIGUSR1)

    def kill(self, ending: Ending, reason: str) -> None:
        """End the process now, and its job as `ending`."""
        self.forced = self.forced or (ending, reason)
        self.hard_at = self.soft_at = None
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass  # it ended by itself; its pipe says so

    def ended(self) -> bool:
        """Whether the process has ended, without waiting; for systems without pidfd."""
        if self.status is None:
            self.status = self._collect(os.WNOHANG)
        return self.status is not None

    def reap(self) -> str:
        """Make sure it is dead, collect it, close everything; how it ended, in words."""
        self.phase = Phase.GONE
        # Where it ended by itself this changes nothing, not even its exit status.
        self._signal(signal.SIGKILL)
        if self.status is None:
            self.status = self._collect(0)
        self.sock.close()
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None
        return describe_status(self.status or 0)

    def _collect(self, options: int) -> int | None:
        if self.process is not None:
            return self.process.poll() if options else self.process.wait()
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:
            return 0  # somebody else in this process collected it
        return os.waitstatus_to_exitcode(status) if pid else None


def describe_status(status: int) -> str:
    """`was killed by SIGSEGV` or `exited with code 3`."""
    if status >= 0:
        return f"exited with code {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _open_pidfd(pid: int) -> int | None:
    # A task may leave a process behind that holds the pipe open: then only this says that the child ended.
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
