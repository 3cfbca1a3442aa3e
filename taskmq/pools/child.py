"""A pool child: one process that runs one task at a time and talks over one socket.

The child decodes and encodes, so that no body is looked at in the coordinator. What tasks do to their
process (signal handlers, closed standard streams, leaked descriptors, a stray fork) must not reach
the next task or the coordinator (reliability row 29).
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from taskmq.codec import encode_failure, failure_line
from taskmq.pools import frames
from taskmq.pools.base import Completion, Ending, Job
from taskmq.pools.child_process import (
    high_descriptor,
    leave_group_signals,
    lowest_descriptor,
    memory_kib,
)
from taskmq.pools.controls import Control
from taskmq.pools.handlers import Handlers
from taskmq.pools.soft_limit import SoftLimit
from taskmq.pools.whole import whole

if TYPE_CHECKING:
    from taskmq.app import App

log = logging.getLogger("taskmq.child")

# A task that leaves this many more descriptors open than there were has the child replaced.
FD_GROWTH = 256
# Below are standard input, output and errors.
_STANDARD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSettings:
    """What a child is told at its start, as JSON values (a spawned one gets them in a frame)."""

    worker: str = ""
    app_spec: str = ""
    as_celery: bool = False
    measure_memory: bool = False
    log_level: int = logging.WARNING
    log_format: str = ""

    def as_json(self) -> dict[str, Any]:
        """As the setup frame carries them."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ChildSettings:
        """Of a setup frame."""
        return cls(**values)


class Channel:
    """The child's end of the pipe to the coordinator.

    Kept on a high descriptor, so that a task that closes 0, 1 and 2 or counts on the next number does
    not meet it.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = high_descriptor(sock)
        self._sock.setblocking(True)
        self._reader = frames.FrameReader(from_child=False)
        self._ready: deque[frames.Frame] = deque()
        self._send_lock = threading.Lock()
        self._receive_lock = threading.Lock()
        self._closed = False

    def send(self, data: bytes) -> None:
        """Send a whole frame. Progress may come from a thread of the task's own."""
        with self._send_lock:
            self._sock.sendall(data)

    def receive(self) -> frames.Frame | None:
        """The next frame, waiting for it; None when the coordinator is gone."""
        with self._receive_lock:
            while not self._ready and not self._closed:
                self._read()
            return self._ready.popleft() if self._ready else None

    def take_cancels(self) -> list[frames.Frame]:
        """The cancel frames that have arrived, without waiting; what else has come stays.

        A thread that outlived its task finds none: the child waits for its next job.
        """
        if not self._receive_lock.acquire(blocking=False):
            return []
        try:
            try:
                self._read(socket.MSG_DONTWAIT)
            except BlockingIOError:
                pass  # nothing new
            found = [f for f in self._ready if f.kind == frames.CANCEL]
            if found:
                self._ready = deque(f for f in self._ready if f.kind != frames.CANCEL)
            return found
        finally:
            self._receive_lock.release()

    def fileno(self) -> int:
        """The descriptor it is kept on."""
        return self._sock.fileno()

    def close(self) -> None:
        """The coordinator sees the end of this child."""
        self._sock.close()

    def _read(self, flags: int = 0) -> None:
        data = self._sock.recv(self._reader.room, flags)
        if not data:
            self._closed = True
            return
        self._ready.extend(self._reader.feed(data))


class ChildControl(Control):
    """Of a run in a child: what the coordinator says of it comes through the channel."""

    __slots__ = ("_channel",)

    def __init__(self, app: App, channel: Channel, number: int) -> None:
        super().__init__(app, number, self._send)
        self._channel = channel

    def _send(self, progress: Completion) -> None:
        frame = frames.pack_completion(progress)
        # A limit that hits between two pieces of a frame would leave half of it in the pipe.
        whole(lambda: self._channel.send(frame))

    def cancelled(self) -> str | None:
        """Why this run should stop, as far as the coordinator has said."""
        if self.reason is None:
            for frame in whole(self._channel.take_cancels):
                number, reason = frame.meta
                if number == self.number:
                    self.reason = reason
        return self.reason


class ChildLoop:
    """Runs jobs until the coordinator says exit or is gone."""

    def __init__(self, app: App, channel: Channel, settings: ChildSettings) -> None:
        self._app = app
        self._channel = channel
        self._settings = settings
        self._pid = os.getpid()
        self._lowest = 0
        self._soft = SoftLimit()
        self._handlers = Handlers()

    def take_signals(self) -> None:
        """Install the child's handlers; called before signals can arrive."""
        leave_group_signals()
        self._soft.install()

    def run(self) -> None:
        """Report ready, then serve."""
        hooks = self._app.hooks
        hooks.child_init.send(self._app)
        self._handlers.remember()
        self._lowest = lowest_descriptor(self._channel.fileno())
        self._channel.send(frames.pack(frames.READY, {"pid": self._pid}))
        while True:
            frame = self._channel.receive()
            if frame is None or frame.kind == frames.EXIT:
                break
            if frame.kind == frames.JOB:
                self._serve(frames.job_of(frame))
            # A cancel that comes when its job has ended means nothing any more.
        hooks.child_exit.send(self._app)

    def _serve(self, job: Job) -> None:
        control = ChildControl(self._app, self._channel, job.number)
        completion = self._soft.execute(self._app, job, control)
        if os.getpid() != self._pid:
            # The task forked and its copy came back here: only one of the two may answer.
            os._exit(0)
        self._handlers.restore()
        self._channel.send(self._packed(completion))

    def _packed(self, completion: Completion) -> bytes:
        measured = self._measured()
        try:
            return frames.pack_completion(completion, measured)
        except Exception as exc:
            # Only this run may suffer from what cannot be sent, not the child and the next one's delivery.
            log.exception("the completion of job %d cannot be sent", completion.number)
            failed = Completion(
                number=completion.number,
                ending=Ending.FAILED,
                body=encode_failure(exc),
                error=failure_line(exc),
            )
            return frames.pack_completion(failed, measured)

    def _measured(self) -> dict[str, Any] | None:
        lowest = lowest_descriptor(self._channel.fileno())
        leaked = lowest - self._lowest
        measured: dict[str, Any] = {}
        if leaked > FD_GROWTH:
            log.warning("a task left %d descriptors open; this child is replaced", leaked)
            measured["leaky"] = True
        elif lowest < _STANDARD <= self._lowest:
            # The next task would print into whatever file gets that number.
            log.warning("a task closed descriptor %d; this child is replaced", lowest)
            measured["leaky"] = True
        if self._settings.measure_memory:
            measured["rss"] = memory_kib()
        return measured or None
