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

from taskmq.pools import frames
from taskmq.pools.base import Completion, Job
from taskmq.pools.child_process import Handlers, high_descriptor, lowest_descriptor, memory_kib
from taskmq.pools.controls import Control
from taskmq.pools.soft_limit import SoftLimit

if TYPE_CHECKING:
    from taskmq.app import App

log = logging.getLogger("taskmq.child")

# A task that leaves this many more descriptors open than there were has the child replaced.
FD_GROWTH = 256

_RECEIVE = 256 * 1024


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
        self._closed = False

    def send(self, data: bytes) -> None:
        """Send a whole frame. Progress may come from a thread of the task's own."""
        with self._send_lock:
            self._sock.sendall(data)

    def receive(self) -> frames.Frame | None:
        """The next frame, waiting for it; None when the coordinator is gone."""
        while not self._ready and not self._closed:
            self._read()
        return self._ready.popleft() if self._ready else None

    def receive_now(self) -> None:
        """Take in what has arrived, without waiting."""
        self._sock.setblocking(False)
        try:
            self._read()
        except BlockingIOError:
            return
        finally:
            self._sock.setblocking(True)

    def take_cancels(self) -> list[frames.Frame]:
        """The cancel frames that were received; what else has come stays."""
        found = [f for f in self._ready if f.kind == frames.CANCEL]
        if found:
            self._ready = deque(f for f in self._ready if f.kind != frames.CANCEL)
        return found

    def fileno(self) -> int:
        """The descriptor it is kept on."""
        return self._sock.fileno()

    def close(self) -> None:
        """The coordinator sees the end of this child."""
        self._sock.close()

    def _read(self) -> None:
        data = self._sock.recv(_RECEIVE)
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
        self._channel.send(frames.pack_completion(progress))

    def cancelled(self) -> str | None:
        """Why this run should stop, as far as the coordinator has said."""
        if self.reason is None:
            self._channel.receive_now()
            for frame in self._channel.take_cancels():
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
        self._handlers.install()
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
        self._channel.send(frames.pack_completion(completion, self._measured()))

    def _measured(self) -> dict[str, Any] | None:
        leaked = lowest_descriptor(self._channel.fileno()) - self._lowest
        measured: dict[str, Any] = {}
        if leaked > FD_GROWTH:
            log.warning("a task left %d descriptors open; this child is replaced", leaked)
            measured["leaky"] = True
        if self._settings.measure_memory:
            measured["rss"] = memory_kib()
        return measured or None
