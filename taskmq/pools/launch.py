"""Starting a pool child: forked from the coordinator, or spawned as a fresh interpreter."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from taskmq.failpoints import Failpoint, failpoint
from taskmq.logformat import SafeFormatter
from taskmq.pools import frames
from taskmq.pools.child import Channel, ChildLoop, ChildSettings
from taskmq.pools.child_process import be_a_child
from taskmq.pools.handlers import GROUP_SIGNALS

if TYPE_CHECKING:
    from taskmq.app import App

log = logging.getLogger("taskmq.pool")

# The exit code of a child that could not serve.
START_FAILED = 70

# The path of modules goes as an argument: in the environment every subprocess of a task would inherit it.
_SPAWNED = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); "
    "from taskmq.pools.launch import spawned; spawned()"
)


class Started(NamedTuple):
    """A child process and the coordinator's end of its pipe.

    `process` is held for a spawned one, whose object would warn if it were dropped unwaited.
    """

    pid: int
    sock: socket.socket
    process: subprocess.Popen[bytes] | None = None


def fork_child(app: App, settings: ChildSettings, close: Sequence[int]) -> Started:
    """Fork a child that serves `app`. `close` are descriptors of its siblings. Raises `OSError`."""
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    # What is buffered would be written twice.
    _flush()
    # A signal between the fork and the child's own handlers would be written by the inherited C handler
    # into the coordinator's wake-up pipe, as if it had been sent twice.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
    try:
        pid = os.fork()
        if pid == 0:
            _forked(app, settings, ours, theirs, close, parent, before)
    except OSError:
        ours.close()
        theirs.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return Started(pid, ours)


def _forked(
    app: App,
    settings: ChildSettings,
    ours: socket.socket,
    theirs: socket.socket,
    close: Sequence[int],
    parent: int,
    mask: Iterable[int],
) -> NoReturn:
    code = START_FAILED
    try:
        signal.set_wakeup_fd(-1)
        ours.close()
        for number in close:
            os.close(number)
        be_a_child(parent)
        # Children that continue one random sequence would all choose the same jitter.
        app.random.seed()
        _serve(app, theirs, settings, mask)
        code = 0
    except BaseException:
        log.critical("a pool child ends", exc_info=True)
    finally:
        # Not sys.exit: the coordinator's frames, exit handlers and buffers are not this process's.
        _flush()
        os._exit(code)


def spawn_child(settings: ChildSettings) -> Started:
    """Start a fresh interpreter that loads the app by `settings.app_spec`. Raises `OSError`."""
    ours, theirs = socket.socketpair()
    try:
        process = subprocess.Popen(  # noqa: S603 - this interpreter, with arguments of ours
            [
                sys.executable,
                *_interpreter_flags(),
                "-c",
                _SPAWNED,
                str(theirs.fileno()),
                str(os.getpid()),
                json.dumps(sys.path),
            ],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.sendall(frames.pack(frames.SETUP, settings.as_json()))
    return Started(process.pid, ours, process)


def _interpreter_flags() -> list[str]:
    # What user code can see of the interpreter stays the same: -X dev, -W error, -O and the like.
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return]


def spawned() -> NoReturn:
    """The main function of a spawned child: `python -c ... FD PARENT`."""
    fd, parent = int(sys.argv[1]), int(sys.argv[2])
    code = START_FAILED
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
    try:
        be_a_child(parent)
        sock = socket.socket(fileno=fd)
        os.set_inheritable(fd, False)
        settings = _receive_settings(sock)
        if not logging.getLogger().handlers:
            handler = logging.StreamHandler()
            handler.setFormatter(SafeFormatter(settings.log_format or logging.BASIC_FORMAT))
            logging.basicConfig(level=settings.log_level, handlers=[handler])
        sys.argv[:] = ["taskmq"]
        from taskmq.loading import install_alias, load_app

        if settings.as_celery:
            install_alias()
        _serve(load_app(settings.app_spec), sock, settings, mask)
        code = 0
    except BaseException:
        logging.basicConfig()
        log.critical("a pool child ends", exc_info=True)
    finally:
        _flush()
        os._exit(code)


def _receive_settings(sock: socket.socket) -> ChildSettings:
    reader = frames.FrameReader(from_child=False)
    while True:
        data = sock.recv(64 * 1024)
        if not data:
            raise EOFError("the coordinator ended before it said what to do")
        # Nothing follows before this child has said that it is ready.
        for frame in reader.feed(data):
            return ChildSettings.from_json(frame.meta)


def _serve(app: App, sock: socket.socket, settings: ChildSettings, mask: Iterable[int]) -> None:
    channel = Channel(sock)
    loop = ChildLoop(app, channel, settings)
    loop.take_signals()
    failpoint(Failpoint.CHILD_BOOT)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        loop.run()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the coordinator is gone; so is the reason to be here
    finally:
        channel.close()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # a task closed it
